import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { AdminClient } from './admin/client';
import { AdminRights } from './admin/rights';
import { HyperPodClient } from './api';
import { ClusterClient } from './clusters/client';
import { ClusterStore } from './clusters/store';
import { RegionChoice } from './clusters/regions';
import { setHintCommands } from './components/hint';
import { LogClient } from './logs/client';
import { LogSocket } from './logs/socket';
import { WakeDetector } from './logs/wake';
import { RunClient } from './runs/client';
import { TrainingClient } from './training/client';
import { NumbersModel } from './training/numbersModel';
import { RunsModel } from './runs/model';
import { followSettings, Preferences } from './settings';
import { CommandIDs, IHyperPod } from './tokens';

/** Also the id of the settings: the schema file's name makes it. */
const PLUGIN_ID = 'hyperpod_jlab:plugin';

const TRANSLATION_DOMAIN = 'hyperpod_jlab';

/**
 * The base of the extension: the clients of the server extension, its settings, the version command.
 *
 * Starting costs next to nothing: what a command does is loaded when it is first used.
 */
export const basePlugin: JupyterFrontEndPlugin<IHyperPod> = {
  id: PLUGIN_ID,
  description: 'Connects JupyterLab with the HyperPod server extension.',
  autoStart: true,
  provides: IHyperPod,
  optional: [ITranslator, ISettingRegistry, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    translator: ITranslator | null,
    settingRegistry: ISettingRegistry | null,
    palette: ICommandPalette | null
  ): IHyperPod => {
    const hyperPod = makeShared(app, translator ?? nullTranslator);
    const { client, trans } = hyperPod;
    app.commands.addCommand(CommandIDs.showVersion, {
      label: trans.__('Show HyperPod Extension Version'),
      caption: trans.__('Show the version of the HyperPod server extension'),
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
    void app.restored.then(async () => {
      const { checkVersion } = await import('./checkVersion');
      // Pages that need the server report that it does not answer.
      await checkVersion(client, trans).catch(() => undefined);
    });
    if (settingRegistry) {
      void followSettings(settingRegistry, PLUGIN_ID, hyperPod);
    }
    return hyperPod;
  }
};

/** The one set of clients and models of a page; it lives as long as the page. */
function makeShared(app: JupyterFrontEnd, translator: ITranslator): IHyperPod {
  const { events, serverSettings } = app.serviceManager;
  const client = new HyperPodClient(serverSettings);
  const runClient = new RunClient(client);
  const socket = new LogSocket({ connect: () => client.socket('logs') });
  const wake = new WakeDetector(() => socket.reconnect());
  window.addEventListener('pagehide', () => wake.dispose(), { once: true });
  setHintCommands(app.commands);
  const clusterClient = new ClusterClient(client);
  const preferences = new Preferences();
  const regions = new RegionChoice(client);
  const clusters = new ClusterStore({ client: clusterClient, regions });
  preferences.changed.connect(() => {
    clusters.isLive = preferences.value.refresh;
  });
  const runs = new RunsModel({
    client: runClient,
    events: events.stream,
    inStep: () => clusters.renew()
  });
  const training = new TrainingClient(client);
  const logs = new LogClient(client, socket);
  // What happened while the server was away, no event told.
  logs.connectionChanged.connect((_, connected) => {
    if (connected) {
      void runs.refresh();
    }
  });
  return {
    client,
    clusterClient,
    clusters,
    preferences,
    regions,
    runClient,
    runs,
    training,
    numbers: new NumbersModel(training, runs),
    logSocket: socket,
    logs,
    adminRights: new AdminRights(new AdminClient(client)),
    trans: translator.load(TRANSLATION_DOMAIN),
    openRun: async (runId, { pin } = { pin: false }) => {
      await app.commands.execute(CommandIDs.openRun, { runId, preview: !pin });
    }
  };
}
