import { answerOf } from '../../__tests__/answers';
import { IRunClient } from '../../runs/client';
import { RunsModel } from '../../runs/model';
import { IRun } from '../../runs/types';
import { CellRuns } from '../cellRuns';
import { checksum } from '../checksum';
import { INotebookRuns } from '../client';

const PATH = 'work/train.ipynb';

function runOf(runId: string, state: string): IRun {
  const notebook = `/home/ada/${PATH}`;
  return answerOf('Run', { run_id: runId, state, own: true, notebook });
}

describe('the runs of cells', () => {
  let known: INotebookRuns;
  let asked: string[];
  let newest: IRun;
  let model: RunsModel;
  let cells: CellRuns;

  beforeEach(() => {
    asked = [];
    newest = runOf('run-1', 'running');
    known = {
      runs: [newest],
      cells: [{ id: 'a', checksum: '0', run_id: 'run-1', number: 1 }]
    };
    model = new RunsModel({
      client: {
        get: () => Promise.resolve(newest),
        delete: () => Promise.resolve()
      } as unknown as IRunClient
    });
    cells = new CellRuns({
      client: {
        ofNotebook: path => {
          asked.push(path);
          return Promise.resolve(known);
        },
        ofRun: () => Promise.resolve({ notebook: null, path: null, cells: [] })
      },
      runs: model,
      path: PATH
    });
    // Nothing is to be asked of the server in the background.
    model.start = () => undefined;
  });

  afterEach(() => {
    cells.dispose();
    model.dispose();
  });

  it('are asked for once', async () => {
    await cells.load();
    expect(cells.of('a')).toEqual({ run: newest, sent: known.cells[0] });
    expect(cells.of('b')).toBeNull();
  });

  it('go from state to state', async () => {
    await cells.load();
    const states: (string | undefined)[] = [];
    cells.changed.connect(() => states.push(cells.of('a')?.run.state));
    newest = runOf('run-1', 'succeeded');
    await model.get('run-1');
    await model.get('run-1');
    expect(states).toEqual(['succeeded']);
    expect(asked).toHaveLength(1);
  });

  it('are asked for again when a run comes from the notebook', async () => {
    await cells.load();
    newest = runOf('run-2', 'waiting');
    known = {
      runs: [newest, runOf('run-1', 'running')],
      cells: [{ id: 'a', checksum: '1', run_id: 'run-2', number: 1 }]
    };
    await model.get('run-2');
    await Promise.resolve();
    expect(cells.of('a')?.run.run_id).toBe('run-2');
    await model.get('run-2');
    expect(asked).toHaveLength(2);
  });

  it('are asked for again when a run was deleted', async () => {
    await cells.load();
    await model.get('run-1');
    known = { runs: [], cells: [] };
    await model.delete('run-1');
    await Promise.resolve();
    expect(cells.of('a')).toBeNull();
    expect(asked).toHaveLength(2);
  });

  it('are those of the new name once the notebook has one', async () => {
    await cells.load();
    await cells.move('work/other.ipynb');
    expect(asked).toEqual([PATH, 'work/other.ipynb']);
  });
});

describe('a checksum', () => {
  it.each([
    ['', '00000000'],
    ['x = 1', '475ba176'],
    ['print(x)  # é', 'b644e81a']
  ])('of %j is the server’s', (text, expected) => {
    expect(checksum(text)).toBe(expected);
  });
});
