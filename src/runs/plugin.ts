import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import {
  INotebookWidgetFactory,
  NotebookWidgetFactory
} from '@jupyterlab/notebook';
import { IStateDB } from '@jupyterlab/statedb';

import { CommandIDs, IHyperPod } from '../tokens';
import { addRunCommands } from './commands';
import { addRunsPage } from './openRuns';
import type { RunPage } from './page';
import { RunPages } from './pages';

/**
 * Run pages, and the commands on runs.
 */
export const runsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:runs',
  description: 'Opens, lists and cancels runs on HyperPod clusters.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [
    ILayoutRestorer,
    ICommandPalette,
    IStateDB,
    INotebookWidgetFactory
  ],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    state: IStateDB | null,
    notebooks: NotebookWidgetFactory.IFactory | null
  ): void => {
    const tracker = new WidgetTracker<RunPage>({ namespace: 'hyperpod-run' });
    const pages = new RunPages(app, tracker);
    addRunCommands(app, hyperPod, pages, notebooks);
    const all = addRunsPage(app, hyperPod, state);
    for (const command of [
      CommandIDs.openRuns,
      CommandIDs.openRun,
      CommandIDs.cancelRun,
      CommandIDs.repeatRun
    ]) {
      palette?.addItem({ command, category: hyperPod.trans.__('HyperPod') });
    }
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openRun,
        args: page => ({
          runId: page.runId,
          preview: pages.isPreview(page)
        }),
        name: page => page.runId
      });
      void restorer.restore(all, {
        command: CommandIDs.openRuns,
        name: page => page.id
      });
    }
  }
};
