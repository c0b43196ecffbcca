import { cellChanges, fileChanges, settingChanges } from '../changes';
import { fieldsOf } from '../fields';
import { SCHEMA } from './schema';

function sent(number: number, id: string | null, text: string | null) {
  return { number, id, checksum: null, text };
}

describe('a comparison of lines', () => {
  it('finds what came and went', () => {
    const [change] = fileChanges('a\nb\nc\nd', 'a\nc\nx\nd');
    expect(change.lines).toEqual([' a', '-b', ' c', '+x', ' d']);
  });

  it('shows the neighbourhood only', () => {
    const old = Array.from({ length: 50 }, (_, at) => `line ${at}`);
    const now = old.map((line, at) => (at === 25 ? 'new' : line));
    const [change] = fileChanges(old.join('\n'), now.join('\n'));
    expect(change.lines).toEqual([
      ' line 23',
      ' line 24',
      '-line 25',
      '+new',
      ' line 26',
      ' line 27'
    ]);
  });
});

describe('changes since the last run', () => {
  it('are told by cell, known by its id', () => {
    const changes = cellChanges(
      [sent(1, 'a', 'x = 1'), sent(2, 'b', 'old'), sent(3, 'c', 'gone')],
      [
        { id: 'b', number: 1, text: 'new' },
        { id: 'a', number: 2, text: 'x = 1' },
        { id: 'd', number: 4, text: 'fresh' },
        { id: 'e', number: 5, text: ' ' }
      ]
    );
    expect(changes?.map(one => [one.number, one.kind])).toEqual([
      [1, 'changed'],
      [3, 'gone'],
      [4, 'new']
    ]);
    expect(changes?.[2].lines).toEqual(['+fresh']);
  });

  it('are told by number where cells had no id', () => {
    const now = [{ id: 'new', number: 1, text: 'x = 2' }];
    const changes = cellChanges([sent(1, null, 'x = 1')], now);
    expect(changes?.map(one => one.kind)).toEqual(['changed']);
  });

  it('are not told where what was sent can’t be read any more', () => {
    const before = [sent(1, 'a', 'x = 1'), sent(2, 'b', null)];
    expect(cellChanges(before, [{ id: 'a', number: 1, text: 'x' }])).toBeNull();
  });

  it('are none where a file is the same', () => {
    expect(fileChanges('a', 'a')).toEqual([]);
    expect(fileChanges('a', 'b')).toHaveLength(1);
  });

  it('take one value written in two ways for the same', () => {
    const found = settingChanges(
      fieldsOf(SCHEMA),
      { time_limit: '300', 'resources.nodes': '1', name: 'a' },
      { time_limit: '5m', name: 'b' }
    );
    expect(found.map(one => [one.field.path, one.before, one.after])).toEqual([
      ['name', 'a', 'b']
    ]);
  });
});
