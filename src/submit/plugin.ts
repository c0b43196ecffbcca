import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';

import { CellsClient } from '../notebook/client';
import { CommandIDs, IHyperPod } from '../tokens';
import { SubmitClient } from './client';
import { addSubmitCommands } from './commands';
import { SubmitMemory } from './memory';
import { RunIds } from './runId';

/** The plugin whose schema has the presets. */
const SETTINGS = 'hyperpod_jlab:plugin';

/**
 * Sends runs: the commands, and the dialog that they open.
 */
export const submitPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:submit',
  description: 'Runs cells, notebooks and files on HyperPod clusters.',
  autoStart: true,
  requires: [IHyperPod],
  optional: [
    INotebookTracker,
    IFileBrowserFactory,
    IDocumentManager,
    IStateDB,
    ISettingRegistry,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    notebooks: INotebookTracker | null,
    browsers: IFileBrowserFactory | null,
    documents: IDocumentManager | null,
    state: IStateDB | null,
    registry: ISettingRegistry | null,
    palette: ICommandPalette | null
  ): void => {
    addSubmitCommands({
      app,
      hyperPod,
      client: new SubmitClient(hyperPod.client),
      cells: new CellsClient(hyperPod.client),
      memory: new SubmitMemory(state, registry, SETTINGS),
      runIds: new RunIds(),
      drafts: new Map(),
      notebooks,
      browsers,
      documents
    });
    const category = hyperPod.trans.__('HyperPod');
    for (const command of [
      CommandIDs.newRun,
      CommandIDs.runCells,
      CommandIDs.runNotebook,
      CommandIDs.runAgain,
      CommandIDs.runFile
    ]) {
      palette?.addItem({ command, category });
    }
  }
};
