import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';

import { IRun, isEnded } from '../runs/types';
import { IHyperPod } from '../tokens';

/** Good news goes by itself; bad news stays. */
const GOOD_NEWS_MS = 10_000;

/**
 * Tells when a run has ended.
 */
export const noticesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:notices',
  description: 'Notifies when a run has ended.',
  autoStart: true,
  requires: [IHyperPod],
  activate: (app: JupyterFrontEnd, hyperPod: IHyperPod): void => {
    hyperPod.runs.stateChanged.connect((_, { before, run }) => {
      // What had ended before this page knew of it is no news.
      if (before !== null && !isEnded(before) && isEnded(run.state)) {
        notify(hyperPod, run);
      }
    });
    void app.restored.then(() => hyperPod.runs.start());
  }
};

function notify(hyperPod: IHyperPod, run: IRun): void {
  const { trans } = hyperPod;
  const options = {
    actions: [
      {
        label: trans.__('Show log'),
        callback: () => void hyperPod.openRun(run.run_id)
      }
    ]
  };
  if (run.state === 'succeeded') {
    Notification.success(trans.__('%1 succeeded.', run.name), {
      ...options,
      autoClose: GOOD_NEWS_MS
    });
  } else if (run.state === 'failed') {
    const text = run.reason
      ? trans.__('%1 failed: %2', run.name, run.reason)
      : trans.__('%1 failed.', run.name);
    Notification.error(text, { ...options, autoClose: false });
  } else {
    Notification.info(trans.__('%1 was cancelled.', run.name), {
      ...options,
      autoClose: GOOD_NEWS_MS
    });
  }
}
