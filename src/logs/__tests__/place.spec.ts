import { executedCell, linkPlace, placeIn } from '../place';

const LINE =
  '  File "/fsx/.hyperpod/runs/39/x/code/train.ipynb/cell-02.py", line 7, in f';

describe('a place in a log', () => {
  it('is a cell and a line of a traceback', () => {
    expect(placeIn(LINE)).toEqual({ cell: 2, line: 7 });
    expect(placeIn(LINE.replace('.py', '.compiled.py'))).toEqual({
      cell: 2,
      line: 7
    });
  });

  it('is found among colours', () => {
    const coloured = LINE.replace('"/', '\u001b[35m"/').replace(
      'line 7',
      'line \u001b[35m7\u001b[0m'
    );
    expect(placeIn(coloured)).toEqual({ cell: 2, line: 7 });
  });

  it.each(['cell-02.py', 'File "a.py", line 3', 'excellent'])(
    'is not in %j',
    text => {
      expect(placeIn(text)).toBeNull();
    }
  );

  it('makes a link of the line’s element', () => {
    const element = document.createElement('span');
    linkPlace(element, 'nothing');
    expect(element.getAttribute('role')).toBeNull();
    linkPlace(element, LINE);
    expect(element.getAttribute('role')).toBe('link');
  });
});

it('names the cell that was executed, not the function that it called', () => {
  const frame = (cell: number) =>
    `  File "/r/code/cells/cell-${cell}.py", line 1`;
  const head = 'Traceback (most recent call last):';
  const one = [head, '  File "/lib/run.py", line 7', frame(3), frame(2)];
  expect(executedCell(one.join('\n'))).toBe(3);
  expect(executedCell([head, frame(1), '', ...one].join('\n'))).toBe(3);
  expect(executedCell('ValueError')).toBeNull();
});
