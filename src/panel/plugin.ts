import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { hyperPodIcon } from '../icons';
import { CommandIDs, IHyperPod } from '../tokens';
import { HyperPodPanel } from './panel';

/** Behind the file browser and the running sessions. */
const RANK = 350;

/**
 * The side panel, and the ways to it.
 */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:panel',
  description: 'Adds a side panel with HyperPod clusters and runs.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [
    ITranslator,
    ILayoutRestorer,
    ICommandPalette,
    ILauncher,
    ILabShell
  ],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    labShell: ILabShell | null
  ): void => {
    const { trans } = hyperPod;
    const panel = makePanel(app, hyperPod, translator ?? nullTranslator);
    app.shell.add(panel, 'left', { rank: RANK, type: 'HyperPod' });
    restorer?.add(panel, panel.id);
    app.commands.addCommand(CommandIDs.showPanel, {
      label: trans.__('HyperPod Clusters and Runs'),
      caption: trans.__('Show HyperPod clusters and your runs on them'),
      icon: hyperPodIcon,
      describedBy: {
        args: { type: 'object', properties: {}, additionalProperties: true }
      },
      execute: () => {
        if (labShell) {
          labShell.activateById(panel.id);
        } else {
          app.shell.activateById(panel.id);
        }
        return { panel: panel.id };
      }
    });
    const command = CommandIDs.showPanel;
    palette?.addItem({ command, category: trans.__('HyperPod') });
    launcher?.add({ command, category: trans.__('Other'), rank: RANK });
  }
};

function makePanel(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  translator: ITranslator
): HyperPodPanel {
  const actions = {
    openCluster: (cluster: string) =>
      void app.commands.execute(CommandIDs.openCluster, { cluster }),
    openHyperpodCluster: (cluster: string, name: string) =>
      void app.commands.execute(CommandIDs.openCluster, {
        cluster,
        name
      }),
    openRun: (runId: string) => void hyperPod.openRun(runId),
    openDoctor: () => void app.commands.execute(CommandIDs.openDoctor),
    openAdmin: () => void app.commands.execute(CommandIDs.openAdmin),
    openPartition: () => void app.commands.execute(CommandIDs.openPartition),
    openLifecycleLog: () =>
      void app.commands.execute(CommandIDs.openLifecycleLog)
  };
  return new HyperPodPanel(hyperPod, actions, translator);
}
