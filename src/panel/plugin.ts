import {
  ILabShell,
  ILayoutRestorer,
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';

import type { IMenuEntry } from '../components/menu';
import { hyperPodIcon } from '../icons';
import { listActions } from '../runs/actions';
import { CommandIDs, IHyperPod } from '../tokens';
import type { IPanelActions } from './actions';
// eslint-disable-next-line jupyter/prefer-lazy-imports -- the side bar has it from the start
import { HyperPodPanel } from './panel';

/** Behind the file browser and the running sessions. */
const RANK = 350;

/** JupyterLab's own, where it is there. */
const SETTINGS = 'settingeditor:open';

/**
 * The side panel, and the ways to it.
 */
export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:panel',
  description: 'Adds a side panel with HyperPod clusters and runs.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [ILayoutRestorer, ICommandPalette, ILauncher, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    labShell: ILabShell | null
  ): void => {
    const { trans } = hyperPod;
    const panel = new HyperPodPanel(hyperPod, panelActions(app, hyperPod));
    app.shell.add(panel, 'left', { rank: RANK, type: 'HyperPod' });
    restorer?.add(panel, panel.id);
    app.commands.addCommand(CommandIDs.showPanel, {
      label: args =>
        args.isLauncher
          ? trans.__('Clusters and Runs')
          : trans.__('HyperPod Clusters and Runs'),
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
    const category = trans.__('HyperPod');
    palette?.addItem({ command: CommandIDs.showPanel, category });
    launcher?.add({
      command: CommandIDs.showPanel,
      args: { isLauncher: true },
      category,
      rank: 0
    });
    void app.restored.then(() => {
      // Another plugin's command, which may be switched off.
      if (app.commands.hasCommand(CommandIDs.newRun)) {
        launcher?.add({ command: CommandIDs.newRun, category, rank: 1 });
      }
      panel.widgets.forEach(widget => widget.update());
    });
  }
};

/** What the panel does with the application. Commands may come after the panel, so they are looked for when they are needed. */
function panelActions(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod
): IPanelActions {
  const { commands } = app;
  const { clusters, regions, runs } = hyperPod;
  const list = listActions(app, hyperPod);
  return {
    openRun: list.openRun,
    cancel: list.cancel,
    remove: list.remove,
    copyId: list.copyId,
    get compare() {
      return list.compare;
    },
    get runAgain() {
      return list.runAgain;
    },
    get newRun() {
      return commands.hasCommand(CommandIDs.newRun)
        ? (cluster: string | null) =>
            void commands.execute(
              CommandIDs.newRun,
              cluster === null ? {} : { cluster }
            )
        : null;
    },
    openCluster: ({ configured, hyperpod, name }, tab) =>
      void commands.execute(CommandIDs.openCluster, {
        cluster:
          hyperpod && !configured && regions.chosen !== null
            ? hyperpod.arn
            : name,
        name: configured ? name : (hyperpod?.name ?? name),
        ...(tab && { tab })
      }),
    connect: ({ hyperpod, name }) =>
      void commands.execute(CommandIDs.connectCluster, {
        cluster: hyperpod?.arn ?? name
      }),
    disconnect: ({ name }) =>
      void commands.execute(CommandIDs.disconnectCluster, { cluster: name }),
    get openRuns() {
      return commands.hasCommand(CommandIDs.openRuns)
        ? () => void commands.execute(CommandIDs.openRuns, { unfiltered: true })
        : null;
    },
    openDoctor: () => void commands.execute(CommandIDs.openDoctor),
    openLifecycleLog: () => void commands.execute(CommandIDs.openLifecycleLog),
    refresh: async () => {
      await Promise.all([clusters.refresh(), runs.refresh()]);
    },
    more: () => moreEntries(app, hyperPod)
  };
}

/** The panel's menu: the other pages, as far as they are there. */
function moreEntries(
  { commands }: JupyterFrontEnd,
  { trans }: IHyperPod
): readonly (IMenuEntry | null)[] {
  const entries = [
    CommandIDs.openUsage,
    CommandIDs.openDoctor,
    CommandIDs.openStorage,
    CommandIDs.openAdmin,
    CommandIDs.openDocs
  ]
    .filter(id => commands.hasCommand(id) && commands.isVisible(id))
    .map(id => ({
      label: commands.label(id),
      run: () => void commands.execute(id)
    }));
  return commands.hasCommand(SETTINGS)
    ? [
        ...entries,
        null,
        {
          label: trans.__('Settings'),
          run: () => void commands.execute(SETTINGS, { query: 'HyperPod' })
        }
      ]
    : entries;
}
