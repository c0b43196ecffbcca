import { formatRanks, parseRanks } from '../ranks';

describe('ranks as text', () => {
  it.each([
    ['', undefined],
    [' , ', undefined],
    ['3', [3]],
    ['0-3, 7', [0, 1, 2, 3, 7]],
    ['7 1;1-2', [1, 2, 7]],
    ['3-1', null],
    ['x', null],
    ['-1', null],
    ['0-99999', null]
  ])('understands %j', (text, ranks) => {
    expect(parseRanks(text)).toEqual(ranks);
  });

  it.each([
    [undefined, ''],
    [[3], '3'],
    [[0, 1, 2, 5, 7, 8], '0-2, 5, 7-8']
  ])('writes %j', (ranks, text) => {
    expect(formatRanks(ranks)).toBe(text);
  });
});
