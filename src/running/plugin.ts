import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRunningSessionManagers } from '@jupyterlab/running';

import { IHyperPod } from '../tokens';
import { RunningRuns } from './runningRuns';

/**
 * Runs at work, in the panel of what runs.
 */
export const runningPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:running',
  description: 'Lists runs that wait or run among the running sessions.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [IRunningSessionManagers],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    managers: IRunningSessionManagers | null
  ): void => {
    if (managers) {
      // It stays as long as the page.
      managers.add(new RunningRuns(hyperPod));
      void app.restored.then(() => hyperPod.runs.start());
    }
  }
};
