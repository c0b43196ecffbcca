import type { NotebookPanel } from '@jupyterlab/notebook';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { cellState } from '../cellChip';
import { CellRuns } from '../cellRuns';
import { NotebookChips } from '../chips';
import { INotebookRuns } from '../client';

/** As much of a code cell as a chip needs. */
function cellOf(id: string): Widget {
  const cell = new Widget();
  cell.layout = new PanelLayout();
  const contentChanged = new Signal<object, void>({});
  const model = {
    type: 'code',
    id,
    contentChanged,
    sharedModel: { getSource: () => '' }
  };
  return Object.assign(cell, { model, ready: Promise.resolve() });
}

it.each([
  [1, 'ran'],
  [2, 'failed'],
  [3, 'not run']
])('cell %s of a run that broke in cell 2: %s', (number, text) => {
  const trans = nullTranslator.load('hyperpod_jlab');
  const failed = (cell: number | null) =>
    run(1, {
      state: 'failed',
      attempts: [{ first_error: { cell, traceback: '' } }]
    });
  expect(cellState(failed(2), number, trans)[1]).toBe(text);
  expect(cellState(failed(null), number, trans)[1]).toBe('failed');
});

it('a cell’s chip goes with its run', async () => {
  const cell = cellOf('a');
  const content = {
    widgets: [cell],
    modelContentChanged: new Signal<object, void>({}),
    modelChanged: new Signal<object, void>({})
  };
  const context = {
    path: 'a.ipynb',
    pathChanged: new Signal<object, string>({}),
    ready: Promise.resolve()
  };
  const disposed = new Signal<object, void>({});
  const panel = { content, context, disposed } as unknown as NotebookPanel;
  let answer: INotebookRuns = {
    runs: [run(1)],
    cells: [{ id: 'a', checksum: '', run_id: run(1).run_id, number: 1 }]
  };
  const client = {
    ofNotebook: () => Promise.resolve(answer),
    ofRun: () => Promise.resolve({ notebook: null, path: null, cells: [] })
  };
  const model = new RunsModel({ client: new FakeRunClient() });
  const runs = new CellRuns({ client, runs: model, path: 'a.ipynb' });
  const chips = new NotebookChips({
    panel,
    runs,
    pathOf: path => path,
    open: () => undefined,
    makeCard: () => Promise.resolve(new Widget()),
    trans: nullTranslator.load('hyperpod_jlab')
  });
  const shown = (): number => (cell.layout as PanelLayout).widgets.length;
  await until(() => shown() === 1);
  expect(await chips.showLog('another')).toBe(false);
  expect(await chips.showLog(run(1).run_id)).toBe(true);
  expect(shown()).toBe(2);
  expect(await chips.showLog(run(1).run_id)).toBe(true);
  expect(shown()).toBe(2);
  answer = { runs: [], cells: [] };
  await runs.load();
  expect(shown()).toBe(0);
  await runs.load();
  chips.dispose();
  model.dispose();
});
