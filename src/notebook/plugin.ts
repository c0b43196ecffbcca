import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ReadonlyJSONObject } from '@lumino/coreutils';

import { makeCard } from '../output/card';
import { CommandIDs, IHyperPod } from '../tokens';
import { addCellLineCommand } from './cellLine';
import { CellRuns } from './cellRuns';
import { NotebookChips } from './chips';
import { CellsClient } from './client';
import { KernelMagic } from './kernelMagic';

const ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: { type: 'string', description: 'The id of the run' }
  },
  required: ['runId'],
  additionalProperties: false
};

/**
 * Gives kernels the magic, and shows at each cell how its newest run is. Nothing is written into the notebook: the server knows the runs by the cells' ids.
 */
export const notebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:notebook',
  description:
    'Loads the magic in kernels, and shows the state of runs at the cells that they came from.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [INotebookTracker],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    notebooks: INotebookTracker | null
  ): void => {
    const { contents, kernelspecs } = app.serviceManager;
    const client = new CellsClient(hyperPod.client);
    const pathOf = (path: string) => contents.localPath(path);
    const all = new Set<NotebookChips>();
    const decorate = (_: unknown, panel: NotebookPanel) => {
      const path = pathOf(panel.context.path);
      const runs = new CellRuns({ client, runs: hyperPod.runs, path });
      const chips = new NotebookChips({
        panel,
        runs,
        pathOf,
        open: runId => void hyperPod.openRun(runId),
        makeCard: run => makeCard(app, hyperPod, run.run_id, run.name),
        trans: hyperPod.trans
      });
      const magic = new KernelMagic({
        session: panel.sessionContext,
        specs: () => kernelspecs.specs,
        isWanted: () => hyperPod.preferences.value.loadMagic
      });
      all.add(chips);
      panel.disposed.connect(() => {
        all.delete(chips);
        chips.dispose();
        magic.dispose();
      });
    };
    app.commands.addCommand(CommandIDs.showLogInNotebook, {
      label: hyperPod.trans.__('Show Log in Notebook'),
      describedBy: { args: ARGUMENTS },
      execute: async ({ runId }) => {
        if (typeof runId !== 'string') {
          throw new Error('runId is missing');
        }
        const shown = await Promise.all(
          [...all].map(chips => chips.showLog(runId))
        );
        return shown.includes(true);
      }
    });
    addCellLineCommand({ app, hyperPod, client, notebooks });
    notebooks?.forEach(panel => decorate(notebooks, panel));
    notebooks?.widgetAdded.connect(decorate);
  }
};
