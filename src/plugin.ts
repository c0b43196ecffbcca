import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { HyperPodClient } from './api';
import { followSettings } from './settings';

/** Also the id of the settings: the schema file's name makes it. */
const PLUGIN_ID = 'hyperpod_jlab:plugin';

const TRANSLATION_DOMAIN = 'hyperpod_jlab';

/**
 * The ids of this plugin's commands.
 */
export namespace CommandIDs {
  export const showVersion = 'hyperpod:show-version';
}

/**
 * The base of the extension: the client of the server extension, its settings, the version command.
 *
 * Starting costs next to nothing: what a command does is loaded when it is first used.
 */
export const basePlugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN_ID,
  description: 'Connects JupyterLab with the HyperPod server extension.',
  autoStart: true,
  optional: [ITranslator, ISettingRegistry, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    settingRegistry: ISettingRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    const trans = (translator ?? nullTranslator).load(TRANSLATION_DOMAIN);
    const client = new HyperPodClient(app.serviceManager.serverSettings);

    app.commands.addCommand(CommandIDs.showVersion, {
      label: trans.__('Show HyperPod Extension Version'),
      caption: trans.__('Ask the HyperPod server extension for its version'),
      describedBy: {
        args: { type: 'object', properties: {}, additionalProperties: false }
      },
      execute: async () => {
        const { showVersion } = await import('./showVersion');
        return showVersion(client, trans);
      }
    });
    palette?.addItem({
      command: CommandIDs.showVersion,
      category: trans.__('HyperPod')
    });

    if (settingRegistry) {
      void followSettings(settingRegistry, PLUGIN_ID, client);
    }
  }
};
