import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import type { DocsPage } from './page';

const PAGE = 'hyperpod-docs';

/**
 * The documentation that comes with the extension. The Help menu has it.
 */
export const helpPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:help',
  description: 'Shows the documentation of the HyperPod extension.',
  autoStart: true,
  requires: [IHyperPod, IRenderMimeRegistry],
  optional: [ILayoutRestorer, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    rendermime: IRenderMimeRegistry,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null
  ): void => {
    const { trans } = hyperPod;
    const command = CommandIDs.openDocs;
    const tracker = new WidgetTracker<DocsPage>({ namespace: PAGE });
    app.commands.addCommand(command, {
      label: trans.__('HyperPod Documentation'),
      caption: trans.__('Show how to use HyperPod from JupyterLab'),
      icon: hyperPodIcon,
      describedBy: {
        args: { type: 'object', properties: {}, additionalProperties: true }
      },
      execute: async () => {
        await openPage(app, tracker, PAGE, async () => {
          const { DocsPage } = await import('./page');
          const label = trans.__('HyperPod Documentation');
          const page = new DocsPage(rendermime, label);
          page.title.label = label;
          await page.open();
          return page;
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
