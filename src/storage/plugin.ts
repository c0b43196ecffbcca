import {
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  WidgetTracker
} from '@jupyterlab/apputils';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { JSONObject } from '@lumino/coreutils';

import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import { FileClient } from './fileClient';
import type { IFileTools } from './fileCommands';

const COPY_ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      description:
        'A path of the file browser; default: what is selected in the file browser'
    },
    cluster: {
      type: 'string',
      description:
        'The configured cluster whose path is copied; it is asked for when it is missing and there are several'
    }
  },
  additionalProperties: false
};

const STATE_ARGUMENTS: JSONObject = {
  type: 'object',
  properties: {
    paths: {
      type: 'array',
      items: { type: 'string' },
      description:
        'Paths of the file browser; default: what is selected in the file browser'
    }
  },
  additionalProperties: false
};

/**
 * The storage partition and its files in the file browser.
 */
export const storagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:storage',
  description:
    'Opens the storage partition in the file browser, and tells of its files where they are.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [IFileBrowserFactory, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    browsers: IFileBrowserFactory | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const client = new FileClient(hyperPod.client);
    const tools = { app, hyperPod, client, browsers };
    addCommands(tools);
    const tracker = new WidgetTracker<MainAreaWidget>({ namespace: PAGE });
    addPage(app, hyperPod, tracker);
    for (const command of [CommandIDs.openPartition, CommandIDs.openStorage]) {
      palette?.addItem({ command, category: hyperPod.trans.__('HyperPod') });
    }
    if (restorer) {
      void restorer.restore(tracker, {
        command: CommandIDs.openStorage,
        name: () => PAGE
      });
    }
  }
};

const PAGE = 'hyperpod-storage';

function addPage(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<MainAreaWidget>
): void {
  const { client, trans } = hyperPod;
  app.commands.addCommand(CommandIDs.openStorage, {
    label: trans.__('HyperPod Storage'),
    caption: trans.__(
      'Show the file systems of this machine, who can read them, and their paths on each cluster'
    ),
    icon: hyperPodIcon,
    describedBy: {
      args: { type: 'object', properties: {}, additionalProperties: true }
    },
    execute: async () => {
      await openPage(app, tracker, PAGE, async () => {
        const [{ StorageClient }, { StorageSection }] = await Promise.all([
          import('./client'),
          import('./section')
        ]);
        const actions = {
          openPartition: () =>
            void app.commands.execute(CommandIDs.openPartition)
        };
        const content = new StorageSection(
          new StorageClient(client),
          actions,
          trans
        );
        const page = new MainAreaWidget({ content, toolbar: content.toolbar });
        page.title.label = trans.__('HyperPod Storage');
        return page;
      });
      return { page: PAGE };
    }
  });
}

function addCommands(tools: IFileTools): void {
  const { app, hyperPod } = tools;
  const { trans } = hyperPod;
  // What they do is loaded when one is first used.
  const load = () => import('./fileCommands');
  app.commands.addCommand(CommandIDs.openPartition, {
    label: trans.__('Open Storage Partition in File Browser'),
    caption: trans.__(
      'Link the storage partition into the current folder of the file browser and open it'
    ),
    icon: hyperPodIcon,
    describedBy: {
      args: { type: 'object', properties: {}, additionalProperties: false }
    },
    execute: async () => (await load()).openPartition(tools)
  });
  app.commands.addCommand(CommandIDs.copyPath, {
    label: trans.__('Copy Path for a Cluster…'),
    caption: trans.__(
      'Copy the path as seen by the nodes or pods of a cluster'
    ),
    icon: hyperPodIcon,
    describedBy: { args: COPY_ARGUMENTS },
    execute: async args => {
      const commands = await load();
      const path = args.path ?? commands.selectedPaths(tools)[0];
      const cluster = typeof args.cluster === 'string' ? args.cluster : null;
      return typeof path === 'string'
        ? commands.copyPath(tools, path, cluster)
        : null;
    }
  });
  app.commands.addCommand(CommandIDs.showFileStates, {
    label: trans.__('File Location…'),
    caption: trans.__(
      'Show whether a file is on the file system, in S3 or both, and transfer it'
    ),
    icon: hyperPodIcon,
    describedBy: { args: STATE_ARGUMENTS },
    execute: async args => {
      const commands = await load();
      const paths = Array.isArray(args.paths)
        ? args.paths.filter(path => typeof path === 'string')
        : commands.selectedPaths(tools);
      return paths.length > 0 ? commands.showFileStates(tools, paths) : null;
    }
  });
}
