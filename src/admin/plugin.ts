import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { AdminPage } from './page';

const PAGE = 'hyperpod-admin';

/** Behind the doctor's card. */
const RANK = 352;

/**
 * The page for admins, and the ways to it: none for others.
 */
export const adminPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:admin',
  description:
    'Sets up the file system of a HyperPod cluster for the people of a Studio domain.',
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
    const { adminRights, trans } = hyperPod;
    const command = CommandIDs.openAdmin;
    const tracker = new WidgetTracker<AdminPage>({ namespace: PAGE });
    app.commands.addCommand(command, {
      label: trans.__('HyperPod Admin'),
      caption: trans.__(
        'Mount the cluster’s file system for users of a Studio domain'
      ),
      icon: hyperPodIcon,
      isVisible: () => adminRights.offered,
      describedBy: {
        args: { type: 'object', properties: {}, additionalProperties: true }
      },
      execute: async () => {
        await openPage(app, tracker, PAGE, () => makePage(app, hyperPod));
        return { page: PAGE };
      }
    });
    palette?.addItem({ command, category: trans.__('HyperPod') });
    let isLaunched = false;
    adminRights.changed.connect(() => {
      app.commands.notifyCommandChanged(command);
      if (adminRights.offered && !isLaunched) {
        isLaunched = true;
        launcher?.add({ command, category: trans.__('HyperPod'), rank: RANK });
      }
    });
    if (restorer) {
      void restorer.restore(tracker, { command, name: () => PAGE });
    }
  }
};

async function makePage(
  app: JupyterFrontEnd,
  { adminRights, client, trans }: IHyperPod
): Promise<AdminPage> {
  const [{ AdminClient }, { AdminModel }, { AdminPage }, { confirmApply }] =
    await Promise.all([
      import('./client'),
      import('./model'),
      import('./page'),
      import('./confirm')
    ]);
  const page = new AdminPage({
    model: new AdminModel(
      new AdminClient(client),
      adminRights,
      app.serviceManager.events.stream
    ),
    confirm: (asked, plan) => confirmApply(asked, plan, trans),
    trans
  });
  page.title.label = trans.__('HyperPod Admin');
  return page;
}
