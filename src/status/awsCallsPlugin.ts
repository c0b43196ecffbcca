import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';

import { IHyperPod } from '../tokens';
import { AwsCallsModel } from './awsCalls';
import { AwsCallsItem } from './awsCallsItem';

/** Behind the number of runs. */
const RANK = 31;

/**
 * How often the server asks AWS, in the status bar once it did.
 */
export const awsCallsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:aws-calls',
  description: 'Shows in the status bar how often AWS is asked.',
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
    const { events } = app.serviceManager;
    const model = new AwsCallsModel(hyperPod.client, events.stream);
    const item = new AwsCallsItem(model, hyperPod.trans);
    const changed = new Signal<object, void>(item);
    model.changed.connect(() => changed.emit(), item);
    item.disposed.connect(() => {
      Signal.clearData(item);
      model.dispose();
    });
    statusBar.registerStatusItem('hyperpod_jlab:aws-calls', {
      item,
      align: 'left',
      rank: RANK,
      isActive: () => model.value.total > 0,
      activeStateChanged: changed
    });
    void app.restored.then(() => model.read());
  }
};
