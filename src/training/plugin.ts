import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification, WidgetTracker } from '@jupyterlab/apputils';

import { hyperPodIcon } from '../icons';
import { isRunShown } from '../runs/pages';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { ComparePage } from './comparePage';
import { alarmText } from './words';

const PAGE = 'hyperpod-compare';

/**
 * Comparison of runs, and notices of alarms.
 */
export const trainingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:training',
  description: 'Compares runs, and notifies of alarms.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null
  ): void => {
    const { trans } = hyperPod;
    const tracker = new WidgetTracker<ComparePage>({ namespace: PAGE });
    app.commands.addCommand(CommandIDs.compareRuns, {
      label: trans.__('Compare Runs'),
      caption: trans.__('Show the curves of runs over each other'),
      icon: hyperPodIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            runIds: {
              type: 'array',
              items: { type: 'string' },
              description: 'The runs, 2 to 20'
            }
          },
          required: ['runIds'],
          additionalProperties: false
        }
      },
      execute: async ({ runIds }) => {
        const ids = Array.isArray(runIds) ? runIds.map(String) : [];
        const id = `${PAGE}-${ids.join('-')}`;
        await openPage(app, tracker, id, () => makePage(hyperPod, ids));
      }
    });
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.compareRuns,
        args: page => ({ runIds: [...page.runIds] }),
        name: page => page.id
      });
    }
    hyperPod.numbers.alarmRaised.connect((_, { alarm, run }) => {
      const isWanted = hyperPod.preferences.value.notifications !== 'off';
      if (run.own && isWanted && !isRunShown(app, run.run_id)) {
        Notification.warning(
          trans.__('%1 – %2', run.name, alarmText(alarm, trans)),
          {
            autoClose: false,
            actions: [
              {
                label: trans.__('Open run'),
                callback: () => void hyperPod.openRun(run.run_id)
              }
            ]
          }
        );
      }
    });
  }
};

async function makePage(
  hyperPod: IHyperPod,
  runIds: readonly string[]
): Promise<ComparePage> {
  const [{ ComparePage }, { CompareModel }] = await Promise.all([
    import('./comparePage'),
    import('./compareModel')
  ]);
  const { runs, training, trans } = hyperPod;
  runs.start();
  const page = new ComparePage(
    new CompareModel(training, runs, runIds),
    runId => void hyperPod.openRun(runId),
    trans
  );
  page.title.label = trans.__('Compare %1 runs', runIds.length);
  page.title.caption = runIds.join(', ');
  page.title.icon = hyperPodIcon;
  page.title.closable = true;
  return page;
}
