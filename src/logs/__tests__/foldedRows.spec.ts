import { FoldedRows, MOST_FOLDED } from '../foldedRows';
import { CONTINUED, ILogFrame, PARTIAL, REDRAWS } from '../types';
import { LogWindow } from '../window';
import { block, frame, page } from './fakes';

/** Each line of several ranks, one after the other: `a 0-2` is said by the ranks 0 to 2. */
function said(after: string, ...lines: string[]): ILogFrame {
  const blocks = lines.flatMap(line => {
    const [text, ranks = '0'] = line.split(' ');
    const [begin, end = begin] = ranks.split('-').map(Number);
    return Array.from({ length: end - begin + 1 }, (_, at) =>
      block([text], { rank: begin + at })
    );
  });
  return frame(after, ...blocks);
}

/** A block of lines of several ranks, one rank after the other. */
function repeated(after: string, lines: string[], ranks: number): ILogFrame {
  const blocks = Array.from({ length: ranks }, (_, rank) =>
    block(lines, { rank })
  );
  return frame(after, ...blocks);
}

function folded(window: LogWindow): FoldedRows {
  const rows = new FoldedRows(window);
  rows.folds = true;
  return rows;
}

/** What is drawn, such as `a 0-2`. */
function shown(rows: FoldedRows): string[] {
  rows.sync();
  const found: string[] = [];
  for (let at = rows.first; at < rows.end; at++) {
    const item = rows.row(at);
    const ranks = (item?.folded ?? []).map(row => row.origin.rank ?? -1);
    const [begin, end] = [Math.min(...ranks), Math.max(...ranks)];
    const who = ranks.length > 0 ? `${begin}-${end}` : item?.row.origin.rank;
    const text = item?.texts.join('/') || `${item?.hidden ?? 0}x`;
    found.push(`${text} ${who ?? '?'}`);
  }
  return found;
}

/** Each row of the window is drawn exactly once, in order. */
function expectWhole(rows: FoldedRows, window: LogWindow): void {
  let next = window.first;
  for (let at = rows.first; at < rows.end; at++) {
    const range = rows.rangeOf(at);
    expect(range?.begin).toBe(next);
    next = range?.end ?? -1;
    expect(rows.numberOf(next - 1)).toBe(at);
  }
  expect(next).toBe(window.end);
}

describe('FoldedRows', () => {
  it('folds the same line of different ranks, and nothing else', () => {
    const window = new LogWindow();
    const rows = folded(window);
    const mark = { kind: 'gap', text: 'b' } as const;
    window.append(said('1', 'a 0-3', 'b 0-1', 'b 1-1', 'c'));
    window.append(frame('2', block(['c'], { rank: 1, attempt: 2 })));
    window.append(frame('3', block(['n'], { rank: null }), block(['n'])));
    window.append(frame('4', block(['b'], { mark, rank: 4 })));
    const drawn = ['a 0-3', 'b 0-1', 'b 1', 'c 0', 'c 1', 'n ?', 'n 0'];
    expect(shown(rows)).toEqual([...drawn, 'b 4', 'b 4']);
    expectWhole(rows, window);
    rows.folds = false;
    expect(rows.end - rows.first).toBe(window.length);
  });

  it('goes on with the last group, and changes no more than that', () => {
    const window = new LogWindow();
    const rows = folded(window);
    window.append(said('1', 'a 0-3', 'b 0-1'));
    shown(rows);
    rows.takeChanged();
    window.append(said('2', 'b 2-3', 'c 0-1'));
    expect(shown(rows)).toEqual(['a 0-3', 'b 0-3', 'c 0-1']);
    expect([...rows.takeChanged()]).toEqual([rows.first + 1]);
  });

  it('opens a row and folds it again', () => {
    const window = new LogWindow();
    const rows = folded(window);
    window.append(said('1', 'a 0-2', 'b 0-1'));
    shown(rows);
    rows.toggle(rows.first);
    expect(shown(rows)).toEqual(['a 0', 'a 1', 'a 2', 'b 0-1']);
    const leads = [0, 1, 2, 3].map(at => rows.row(rows.first + at)?.isLead);
    expect(leads).toEqual([true, false, false, false]);
    window.append(said('2', 'c 0-1'));
    expect(shown(rows)).toHaveLength(5);
    rows.toggle(rows.first + 2);
    expect(shown(rows)).toEqual(['a 0-2', 'b 0-1', 'c 0-1']);
    expectWhole(rows, window);
  });

  it('waits for the end of a line, and follows one that is drawn again', () => {
    const window = new LogWindow();
    const rows = folded(window);
    const bar = (rank: number, text: string, flags: number) =>
      block([text], { rank, flags: [[0, flags]] });
    window.append(frame('1', bar(0, '9 %', PARTIAL), bar(1, '9 %', PARTIAL)));
    expect(shown(rows)).toEqual(['9 % 0', '9 % 1']);
    const last = CONTINUED | REDRAWS;
    window.append(frame('2', bar(0, 'done', last), bar(1, 'done', last)));
    expect(shown(rows)).toEqual(['done 0-1']);
    expectWhole(rows, window);
  });

  it('joins what is put in front, and keeps numbers', () => {
    const window = new LogWindow();
    window.reset(page('5', [said('9', 'b 2-3', 'c 0-1')]));
    const rows = folded(window);
    const number = rows.first;
    window.prepend([page('0', [said('5', 'a 0-3', 'b 0-1')])]);
    expect(shown(rows)).toEqual(['a 0-3', 'b 0-3', 'c 0-1']);
    expect(rows.row(number)?.row.text).toBe('b');
    expect(rows.takeChanged().has(number)).toBe(true);
  });

  it('folds a block of lines that ranks repeat', () => {
    const window = new LogWindow();
    const rows = folded(window);
    window.append(said('1', 'own'));
    window.append(repeated('2', ['a', 'b'], 3));
    expect(shown(rows)).toEqual(['own 0', 'a/b 0-2']);
    window.append(frame('3', block(['a'], { rank: 3 })));
    expect(shown(rows)).toEqual(['own 0', 'a/b 0-2', 'a 3']);
    window.append(frame('4', block(['b', 'c'], { rank: 3 })));
    expect(shown(rows)).toEqual(['own 0', 'a/b 0-3', 'c 3']);
    expectWhole(rows, window);
    rows.toggle(rows.first + 1);
    expect(shown(rows)).toHaveLength(10);
    expectWhole(rows, window);
    rows.toggle(rows.first + 4);
    expect(shown(rows)).toEqual(['own 0', 'a/b 0-3', 'c 3']);
  });

  it('folds no block of which a part differs, or is gone', () => {
    const window = new LogWindow(5);
    const rows = folded(window);
    window.append(
      frame('1', block(['a', 'b']), block(['a', 'x'], { rank: 1 }))
    );
    expect(shown(rows)).toEqual(['a 0', 'b 0', 'a 1', 'x 1']);
    window.append(repeated('2', ['a', 'b'], 3));
    expect(shown(rows)).toEqual(['b 0', 'a/b 1-2']);
    expectWhole(rows, window);
  });

  it('folds the lines of nodes, whatever they say', () => {
    const window = new LogWindow();
    const rows = folded(window);
    rows.foldsNodes = true;
    window.append(said('1', 'a'));
    window.append(frame('2', block(['p', 'q', 'r'], { rank: null })));
    expect(shown(rows)).toEqual(['a 0', '3x ?']);
    expect(rows.hides(rows.first + 1)).toBe(true);
    window.append(frame('3', block(['s'], { rank: null, node_rank: 1 })));
    expect(shown(rows)).toEqual(['a 0', '4x ?']);
    rows.toggle(rows.first + 1);
    expect(shown(rows)).toEqual(['a 0', 'p ?', 'q ?', 'r ?', 's ?']);
    expect(rows.row(rows.first + 1)?.isLead).toBe(true);
    rows.foldsNodes = false;
    expectWhole(rows, window);
  });

  it('never folds more than its measure in one', () => {
    const window = new LogWindow();
    const rows = folded(window);
    window.append(said('1', `a 0-${2 * MOST_FOLDED}`));
    shown(rows);
    expect(rows.end - rows.first).toBe(3);
    expectWhole(rows, window);
  });

  it('loses no line, whatever comes and goes', () => {
    const window = new LogWindow(60);
    const rows = folded(window);
    let seed = 7;
    const random = (below: number) =>
      (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    const some = (after: string) =>
      said(
        after,
        ...Array.from({ length: 4 }, () => `${random(3)} 0-${random(6)}`)
      );
    for (let step = 0; step < 2000; step++) {
      const what = random(10);
      if (what < 2) {
        const lines = ['0', '1', '2'].slice(random(3));
        window.append(repeated(`${step}`, lines, 1 + random(4)));
      } else if (what < 5) {
        window.append(some(`${step}`));
      } else if (what < 7) {
        window.prepend([page(`-${step}`, [some(`p${step}`)])]);
      } else if (what < 8) {
        rows.toggle(rows.first + random(Math.max(1, rows.end - rows.first)));
      } else if (random(20) === 0) {
        window.reset(page(`r${step}`, [some(`s${step}`)]));
      }
      if (random(3) > 0) {
        rows.sync();
        expectWhole(rows, window);
      }
    }
  });
});
