import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { isRunShown } from '../runs/pages';
import type { IRunChange } from '../runs/model';
import { isEnded } from '../runs/types';
import { CommandIDs, IHyperPod } from '../tokens';
import { EndedRuns } from './bundle';

/**
 * Tells when runs have ended.
 */
export const noticesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:notices',
  description: 'Notifies when runs have ended.',
  autoStart: true,
  requires: [IHyperPod],
  activate: (app: JupyterFrontEnd, hyperPod: IHyperPod): void => {
    const ended = new EndedRuns({
      openRun: runId => void hyperPod.openRun(runId),
      openRuns: () => void openRuns(app),
      trans: hyperPod.trans
    });
    hyperPod.runs.stateChanged.connect((_, change) => {
      if (isNews(app, hyperPod, change)) {
        ended.add(change.run);
      }
    });
    void app.restored.then(() => hyperPod.runs.start());
  }
};

/** Whether the user is to be told. */
function isNews(
  app: JupyterFrontEnd,
  { preferences, runs }: IHyperPod,
  { before, run }: IRunChange
): boolean {
  const { notifications } = preferences.value;
  return (
    // What had ended before this page knew of it is no news.
    before !== null &&
    !isEnded(before) &&
    isEnded(run.state) &&
    // One notification for a whole array.
    run.parent === null &&
    (notifications === 'all' ||
      (notifications === 'failures' && run.state === 'failed')) &&
    !(run.state === 'cancelled' && runs.isCancelledHere(run.run_id)) &&
    !isRunShown(app, run.run_id)
  );
}

/** The page of all runs or, where there is none, the panel. */
async function openRuns({ commands }: JupyterFrontEnd): Promise<void> {
  const command = [CommandIDs.openRuns, CommandIDs.showPanel].find(id =>
    commands.hasCommand(id)
  );
  if (command !== undefined) {
    await commands.execute(command);
  }
}
