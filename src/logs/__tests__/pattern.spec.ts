import { filterOf, finderOf, levelOf, LEVELS, literally } from '../pattern';

describe('the level of a line', () => {
  it.each([
    '2026-01-01 ERROR loader: no file',
    '\u001b[31mERROR\u001b[0m: no file',
    "KeyError: 'labels'",
    'torch.cuda.OutOfMemoryError: CUDA out of memory',
    'Traceback (most recent call last):',
    'E1126 18:34:17.220000 1 torch/elastic/api.py:984] failed',
    'main.c:3: error: expected ;',
    'level=error msg="x"'
  ])('is error in %j', text => expect(levelOf(text)).toBe('error'));

  it.each([
    'WARNING: slow',
    '/x.py:3: UserWarning: old',
    'W1126 18:34:17.120000 1 api.py:1010] Sending',
    'warning: unused'
  ])('is warning in %j', text => expect(levelOf(text)).toBe('warning'));

  it.each(['step 3 error 0.31', 'no errors', 'TERRORS', 'loss 3e-4', ''])(
    'is none in %j',
    text => expect(levelOf(text)).toBeNull()
  );
});

describe('the filter', () => {
  it('asks for lines by pattern, by levels and by both', () => {
    const errors = new Set(['error'] as const);
    const none = { grep: undefined, ignoreCase: undefined };
    expect(filterOf('', new Set())).toEqual(none);
    expect(filterOf('loss', new Set())).toEqual({
      grep: 'loss',
      ignoreCase: true
    });
    expect(filterOf('Loss', new Set()).ignoreCase).toBeUndefined();
    expect(filterOf('', errors).grep).toBe(LEVELS.error);
    const { grep } = filterOf('lost', errors);
    expect(grep).toBe(`^(?=.*(?:${LEVELS.error}))(?=.*(?i:lost))`);
  });

  it('finds what is looked for in a line', () => {
    const finds = (pattern: string, text: string) =>
      finderOf(pattern)?.(text).map(({ begin, end }) => text.slice(begin, end));
    expect(finds('a', 'Abba')).toEqual(['A', 'a']);
    expect(finds('A', 'Abba')).toEqual(['A']);
    expect(finds(literally('[0]: (x)'), 'rank [0]: (x)')).toEqual(['[0]: (x)']);
    expect(finds('x*', 'ab')).toEqual([]);
    expect(finderOf('(')).toBeNull();
  });
});
