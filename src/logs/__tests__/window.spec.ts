import { CONTINUED, ILogFrame, PARTIAL, REDRAWS } from '../types';
import { LogWindow } from '../window';
import { block, frame, page } from './fakes';

function texts(window: LogWindow): string[] {
  const found: string[] = [];
  for (let at = window.first; at < window.end; at++) {
    found.push(window.row(at)?.text ?? '?');
  }
  return found;
}

/** Lines `begin` to `end`, in frames of `size`; the cursor behind line n is `n + 1`. */
function count(begin: number, end: number, size: number): ILogFrame[] {
  const frames: ILogFrame[] = [];
  for (let at = begin; at < end; at += size) {
    const lines: string[] = [];
    for (let line = at; line < Math.min(end, at + size); line++) {
      lines.push(String(line));
    }
    frames.push(frame(String(Math.min(end, at + size)), block(lines)));
  }
  return frames;
}

describe('LogWindow', () => {
  it('holds what came, with times, streams and marks', () => {
    const window = new LogWindow();
    const mark = { kind: 'attempt', text: 'attempt 1' } as const;
    window.append(
      frame(
        'c1',
        block(['a', 'b'], { mark, times: [1, null] }),
        block(['c'], { rank: 1 })
      )
    );
    window.append(frame('c2', block(null, { mark: { ...mark, kind: 'gap' } })));
    expect(texts(window)).toEqual(['attempt 1', 'a', 'b', 'c', 'attempt 1']);
    expect(window.row(0)?.mark?.kind).toBe('attempt');
    expect(window.row(1)?.time).toBe(1);
    expect(window.row(2)?.time).toBeNull();
    expect(window.row(3)).toMatchObject({ time: 1000, origin: { rank: 1 } });
    expect(window.row(4)?.mark?.kind).toBe('gap');
    expect(window.after).toBe('c2');
  });

  it('puts the pieces of a line together, each in its stream', () => {
    const window = new LogWindow();
    window.append(frame('1', block(['ab'], { flags: [[0, PARTIAL]] })));
    window.append(frame('2', block(['other'], { rank: 1 })));
    window.takeChanged();
    window.append(
      frame('3', block(['cd', 'next'], { flags: [[0, CONTINUED]] }))
    );
    expect(texts(window)).toEqual(['abcd', 'other', 'next']);
    expect([...window.takeChanged()]).toEqual([0]);
    expect(window.row(0)?.open).toBe(false);
  });

  it('redraws a bar in its row, without growing', () => {
    const window = new LogWindow();
    window.append(frame('0', block(['0%'], { flags: [[0, PARTIAL]] })));
    const flags: [number, number][] = [[0, CONTINUED | PARTIAL | REDRAWS]];
    for (let at = 1; at <= 1000; at++) {
      window.append(frame(String(at), block([`${at}`], { flags })));
    }
    expect(texts(window)).toEqual(['1000']);
    expect(window.after).toBe('1000');
    window.append(frame('end', block(['done'])));
    expect(texts(window)).toEqual(['1000', 'done']);
  });

  it('begins a row for a bar that has gone far back', () => {
    const window = new LogWindow();
    window.append(frame('0', block(['0%'], { flags: [[0, PARTIAL]] })));
    window.append(frame('1', block(Array<string>(300).fill('x'), { rank: 1 })));
    const flags: [number, number][] = [[0, CONTINUED | PARTIAL | REDRAWS]];
    window.append(frame('2', block(['50%'], { flags })));
    expect(window.row(0)?.text).toBe('0%');
    expect(window.row(window.end - 1)?.text).toBe('50%');
  });

  it('stays bounded, and its numbers stay with the rows', () => {
    const window = new LogWindow(100);
    count(0, 10_000, 7).forEach(item => window.append(item));
    expect(window.length).toBeLessThanOrEqual(107);
    expect(window.end).toBe(10_000);
    expect(window.row(9_999)?.text).toBe('9999');
    expect(window.row(window.first)?.text).toBe(String(window.first));
    expect(window.backward).toEqual({ cursor: String(window.first), skip: 0 });
  });

  it('cuts a frame that is bigger than itself, and reads it back whole', () => {
    const window = new LogWindow(100);
    count(0, 1000, 1000).forEach(item => window.append(item));
    expect(window.length).toBe(100);
    expect(window.backward).toEqual({ cursor: '1000', skip: 100 });
    window.prepend([
      page('600', count(600, 800, 50)),
      page('800', count(800, 1000, 50))
    ]);
    expect(window.first).toBe(600);
    expect(window.row(950)?.text ?? '950').toBe('950');
    expect(window.row(600)?.text).toBe('600');
  });

  it('pages backward to the first line, giving up rows at the end', () => {
    const window = new LogWindow(100);
    window.reset(page('900', count(900, 1000, 10)));
    window.append(frame('1010', ...count(1000, 1010, 10)[0].blocks));
    expect(window.row(window.end - 1)?.text).toBe('1009');
    const evicted = window.prepend([page('850', count(850, 900, 10))]);
    expect(evicted).toBe(true);
    expect(texts(window)[0]).toBe('850');
    const last = Number(texts(window)[window.length - 1]);
    expect(window.after).toBe(String(last + 1));
    expect(window.length).toBeLessThanOrEqual(100);
    window.prepend([page('0', count(800, 850, 10), { at_start: true })]);
    expect(window.backward).toBeNull();
  });

  it('pages forward again without loss or repeat', () => {
    const window = new LogWindow(100);
    window.reset(page('900', count(900, 1000, 10)));
    window.prepend([page('850', count(850, 900, 10))]);
    const from = Number(window.after);
    window.appendPage(page(String(from), count(from, 1000, 10)));
    const shown = texts(window).map(Number);
    expect(shown[shown.length - 1]).toBe(999);
    shown.forEach((value, at) => expect(value).toBe(shown[0] + at));
    expect(window.atStart).toBe(false);
  });

  it('takes a merged piece back when its frame goes', () => {
    const window = new LogWindow(10);
    window.reset(
      page('10', [
        frame(
          '15',
          block(['a', 'b', 'c', 'd', 'ab'], { flags: [[4, PARTIAL]] })
        ),
        frame('18', block(['cd', 'e', 'f', 'g'], { flags: [[0, CONTINUED]] }))
      ])
    );
    expect(texts(window)[4]).toBe('abcd');
    expect(window.prepend([page('5', count(5, 10, 5))])).toBe(true);
    expect(window.after).toBe('15');
    expect(texts(window)[9]).toBe('ab');
    window.append(
      frame('18', block(['cd', 'e', 'f', 'g'], { flags: [[0, CONTINUED]] }))
    );
    expect(texts(window)).toContain('abcd');
    expect(texts(window)).not.toContain('cd');
  });

  it('puts a line together again when its beginning is paged in', () => {
    const window = new LogWindow(4);
    window.append(frame('2', block(['x', 'ab'], { flags: [[1, PARTIAL]] })));
    window.append(frame('3', block(['cd', 'e'], { flags: [[0, CONTINUED]] })));
    window.append(frame('9', block(['f', 'g', 'h'])));
    expect(window.row(window.first)?.text).toBe('e');
    window.prepend([
      page('0', [frame('2', block(['x', 'ab'], { flags: [[1, PARTIAL]] }))])
    ]);
    expect(texts(window).slice(0, 3)).toEqual(['x', 'abcd', 'e']);
  });

  it('does not let a line grow without bounds', () => {
    const window = new LogWindow();
    const piece = 'x'.repeat(16_384);
    window.append(frame('0', block([piece], { flags: [[0, PARTIAL]] })));
    for (let at = 1; at < 100; at++) {
      const flags: [number, number][] = [[0, CONTINUED | PARTIAL]];
      window.append(frame(String(at), block([piece], { flags })));
    }
    expect(window.length).toBe(25);
  });

  it('holds few long lines rather than much memory', () => {
    const window = new LogWindow();
    const held = () => {
      let sum = 0;
      for (let at = window.first; at < window.end; at++) {
        sum += window.row(at)?.text.length ?? 0;
      }
      return sum;
    };
    for (let at = 0; at < 2000; at++) {
      const line = String(at).padEnd(16_000, 'x');
      window.append(frame(String(at + 1), block([line])));
    }
    expect(window.characters).toBe(held());
    expect(window.characters).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(window.row(window.end - 1)?.text).toContain('1999');
    expect(window.backward?.cursor).toBe(String(window.first));
    const { first } = window;
    const before = count(first - 100, first, 50);
    window.prepend([page(String(first - 100), before)]);
    expect(window.characters).toBe(held());
    expect(window.row(first - 1)?.text).toBe(String(first - 1));
  });
});
