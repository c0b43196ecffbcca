import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Clipboard,
  ICommandPalette,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { checkIcon } from '@jupyterlab/ui-components';

import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { IDoctorClient } from './client';
import type { DoctorPage } from './page';

const PAGE = 'hyperpod-doctor';

/** Behind the panel's card. */
const RANK = 351;

const BRIEFLY = 3000;

/**
 * The page of the doctor, and the ways to it.
 */
export const doctorPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:doctor',
  description: 'Examines what a run on a HyperPod cluster needs.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer, ICommandPalette, ILauncher],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null
  ): void => {
    const { trans } = hyperPod;
    const command = CommandIDs.openDoctor;
    const tracker = new WidgetTracker<DoctorPage>({ namespace: PAGE });
    app.commands.addCommand(command, {
      label: trans.__('HyperPod Doctor'),
      caption: trans.__(
        'Check what a run on a HyperPod cluster needs and show how to fix problems'
      ),
      icon: checkIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            examine: {
              type: 'boolean',
              description:
                'Whether the first examination begins at once; default: true'
            },
            cluster: {
              type: 'string',
              description: 'Check this cluster now, and no other'
            }
          },
          // The launcher adds its own.
          additionalProperties: true
        }
      },
      execute: async args => {
        await openPage(app, tracker, PAGE, () => makePage(app, hyperPod));
        if (args.examine !== false) {
          const cluster =
            typeof args.cluster === 'string' ? args.cluster : null;
          await tracker.find(page => page.id === PAGE)?.examine(cluster);
        }
        return { page: PAGE };
      }
    });
    palette?.addItem({ command, category: trans.__('HyperPod') });
    launcher?.add({ command, category: trans.__('HyperPod'), rank: RANK });
    if (restorer) {
      void restorer.restore(tracker, {
        command,
        args: () => ({ examine: false }),
        name: () => PAGE
      });
    }
  }
};

async function makePage(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod
): Promise<DoctorPage> {
  const [{ DoctorClient }, { DoctorModel }, { DoctorPage }, { saveText }] =
    await Promise.all([
      import('./client'),
      import('./model'),
      import('./page'),
      import('../components/saveText')
    ]);
  const { trans } = hyperPod;
  const client = new DoctorClient(hyperPod.client);
  const page = new DoctorPage({
    model: new DoctorModel(client, app.serviceManager.events.stream),
    clusters: async () => {
      const rows = await hyperPod.clusterClient.configured();
      return rows.map(({ name }) => name);
    },
    copy: text => {
      Clipboard.copyToSystem(text);
      Notification.info(trans.__('Copied'), { autoClose: BRIEFLY });
    },
    copyReport: () =>
      void withReport(client, hyperPod, ({ text }) => {
        Clipboard.copyToSystem(text);
        Notification.info(trans.__('Report copied'), {
          autoClose: BRIEFLY
        });
      }),
    saveReport: () =>
      void withReport(client, hyperPod, ({ name, text }) =>
        saveText(name, text)
      ),
    trans
  });
  page.title.label = trans.__('HyperPod Doctor');
  return page;
}

async function withReport(
  client: IDoctorClient,
  { trans }: IHyperPod,
  take: (report: { name: string; text: string }) => void
): Promise<void> {
  try {
    take(await client.report());
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    Notification.error(trans.__('No report available: %1', why));
  }
}
