import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import { IHyperPod } from '../tokens';
import { addCellLineCommand } from './cellLine';
import { CellRuns } from './cellRuns';
import { NotebookChips } from './chips';
import { CellsClient } from './client';

/**
 * Shows at each cell how its newest run is. Nothing is written into the notebook: the server knows the runs by the cells' ids.
 */
export const notebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:notebook',
  description: 'Shows the state of runs at the cells that they came from.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [INotebookTracker],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    notebooks: INotebookTracker | null
  ): void => {
    const { contents } = app.serviceManager;
    const client = new CellsClient(hyperPod.client);
    const pathOf = (path: string) => contents.localPath(path);
    const decorate = (_: unknown, panel: NotebookPanel) => {
      const path = pathOf(panel.context.path);
      const runs = new CellRuns({ client, runs: hyperPod.runs, path });
      const chips = new NotebookChips({
        panel,
        runs,
        pathOf,
        open: runId => void hyperPod.openRun(runId),
        trans: hyperPod.trans
      });
      panel.disposed.connect(() => chips.dispose());
    };
    addCellLineCommand({ app, hyperPod, client, notebooks });
    notebooks?.forEach(panel => decorate(notebooks, panel));
    notebooks?.widgetAdded.connect(decorate);
  }
};
