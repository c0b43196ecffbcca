import { ansiSpans } from '../ansi';

function brief(line: string): [string, string][] {
  return ansiSpans(line).map(({ text, classes }) => [
    text,
    classes.join(' ').replace(/jp-HyperPod-ansi-/g, '')
  ]);
}

describe('ansiSpans', () => {
  it('leaves plain text alone', () => {
    expect(brief('a\tb')).toEqual([['a\tb', '']]);
  });

  it('knows colours, weights and their ends', () => {
    expect(brief('a\x1b[1;31mb\x1b[22mc\x1b[39md\x1b[0m')).toEqual([
      ['a', ''],
      ['b', 'red-fg bold'],
      ['c', 'red-fg'],
      ['d', '']
    ]);
    expect(brief('\x1b[92;44mx')).toEqual([['x', 'green-intense-fg blue-bg']]);
  });

  it('knows 256 colours and all colours', () => {
    expect(brief('\x1b[38;5;9mx')).toEqual([['x', 'red-intense-fg']]);
    expect(ansiSpans('\x1b[38;5;196mx')[0].color).toBe('rgb(255, 0, 0)');
    expect(ansiSpans('\x1b[48;2;1;2;3mx')[0].background).toBe('rgb(1, 2, 3)');
    expect(ansiSpans('\x1b[38;5;244mx')[0].color).toBe('rgb(128, 128, 128)');
  });

  it('leaves out what is no text', () => {
    expect(brief('\x1b[2K\x1b[1Aa\x07b\x1b]0;title\x07c\x1b(')).toEqual([
      ['a', ''],
      ['b', ''],
      ['c', ''],
      ['(', '']
    ]);
  });

  it('tells where a span begins in the line', () => {
    expect(ansiSpans('ab\x1b[31mcd').map(span => span.begin)).toEqual([0, 7]);
  });
});
