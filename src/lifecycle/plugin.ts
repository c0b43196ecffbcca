import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { LifecycleLogPage } from './logPage';

const PAGE = 'hyperpod-lifecycle-log';

/**
 * The log of the lifecycle script. The panel shows its progress.
 */
export const lifecyclePlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:lifecycle',
  description: 'Shows the log of the script that makes a space ready.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const { client, trans } = hyperPod;
    const command = CommandIDs.openLifecycleLog;
    const tracker = new WidgetTracker<LifecycleLogPage>({ namespace: PAGE });
    app.commands.addCommand(command, {
      label: trans.__('HyperPod Start Log'),
      caption: trans.__(
        'Show the log of the script that sets up this space for the cluster'
      ),
      icon: hyperPodIcon,
      describedBy: {
        args: { type: 'object', properties: {}, additionalProperties: true }
      },
      execute: async () => {
        await openPage(app, tracker, PAGE, async () => {
          const [{ LifecycleClient }, { LifecycleLogPage }] = await Promise.all(
            [import('./client'), import('./logPage')]
          );
          return new LifecycleLogPage(new LifecycleClient(client), trans);
        });
        return { page: PAGE };
      }
    });
    palette?.addItem({ command, category: trans.__('HyperPod') });
    if (restorer) {
      void restorer.restore(tracker, { command, name: () => PAGE });
    }
  }
};
