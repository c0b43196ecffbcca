import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';

import { CommandIDs, IHyperPod } from '../tokens';
import { StatusItem } from './statusItem';

/**
 * The number of runs at work, in the status bar while there are any.
 */
export const statusPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:status',
  description: 'Shows in the status bar how many runs wait and run.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    statusBar: IStatusBar | null
  ): void => {
    if (!statusBar) {
      return;
    }
    const { runs, trans } = hyperPod;
    const item = new StatusItem(
      runs,
      () => void app.commands.execute(CommandIDs.showPanel),
      trans
    );
    const changed = new Signal<object, void>(item);
    runs.changed.connect(() => changed.emit(), item);
    item.disposed.connect(() => Signal.clearData(item));
    statusBar.registerStatusItem('hyperpod_jlab:status', {
      item,
      align: 'left',
      rank: 30,
      isActive: () => runs.active.length > 0,
      activeStateChanged: changed
    });
    void app.restored.then(() => runs.start());
  }
};
