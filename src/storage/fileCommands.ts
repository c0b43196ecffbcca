import { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ReadonlyJSONObject } from '@lumino/coreutils';

import { ApiError } from '../api';
import { errorText } from '../components/errorMessage';
import { IHyperPod } from '../tokens';
import { FileAction, IFileClient } from './fileClient';
import { FileStates } from './fileStates';
import { IPaths, IStoredFile } from './types';
import { actionText } from './fileWords';

/** The file browser's own command that shows a folder. */
const GO_TO_PATH = 'filebrowser:go-to-path';

const BRIEFLY = 3000;

/** What can be done to files in which states. */
const FITS: Readonly<Record<FileAction, readonly (string | null)[]>> = {
  hydrate: ['released'],
  release: ['archived']
};

const ACTIONS: readonly FileAction[] = ['hydrate', 'release'];

/**
 * What the commands on files work with.
 */
export interface IFileTools {
  readonly app: JupyterFrontEnd;
  readonly hyperPod: IHyperPod;
  readonly client: IFileClient;
  /** Null where the application has no file browser. */
  readonly browsers: IFileBrowserFactory | null;
}

/** The paths on the server of what is selected in the file browser. */
export function selectedPaths(tools: IFileTools): readonly string[] {
  const items = tools.browsers?.tracker.currentWidget?.selectedItems() ?? [];
  const { contents } = tools.app.serviceManager;
  return [...items].map(item => contents.localPath(item.path));
}

/** Make a link to the partition and show it in the file browser. */
export async function openPartition(
  tools: IFileTools
): Promise<ReadonlyJSONObject | null> {
  const { app, client, hyperPod } = tools;
  const made = await tried(tools, () => client.link());
  if (made === null) {
    return null;
  }
  if (app.commands.hasCommand(GO_TO_PATH)) {
    await app.commands.execute(GO_TO_PATH, { path: made.path });
  } else {
    Notification.info(
      hyperPod.trans.__('The storage partition is in the folder %1', made.path),
      { autoClose: BRIEFLY }
    );
  }
  return { path: made.path, partition: made.partition, made: made.made };
}

/** Copy a path as one side has it; which one is asked when there are several and none is named. */
export async function copyPath(
  tools: IFileTools,
  path: string,
  cluster: string | null
): Promise<ReadonlyJSONObject | null> {
  const { client, hyperPod } = tools;
  const { trans } = hyperPod;
  const paths = await tried(tools, () => client.paths(path));
  if (paths === null) {
    return null;
  }
  const unseen = whyUnseen(paths, cluster);
  if (unseen !== null) {
    const words =
      cluster === null
        ? trans.__('%1 is not available on any cluster', paths.here)
        : trans.__('%1 has no separate path', cluster);
    Notification.warning([words, ...unseen].join('\n'));
    return null;
  }
  const sides = sidesOf(tools, paths);
  const named = sides.filter(side => side.cluster === cluster);
  const chosen =
    cluster === null && sides.length > 1 ? await choose(tools, sides) : null;
  const side = cluster === null ? (chosen ?? only(sides)) : (named[0] ?? null);
  if (side === null) {
    if (cluster !== null) {
      Notification.error(trans.__('%1 has no separate path', cluster));
    }
    return null;
  }
  Clipboard.copyToSystem(side.path);
  Notification.info(trans.__('Copied: %1', side.path), { autoClose: BRIEFLY });
  return { cluster: side.cluster, path: side.path };
}

/** Show where the bytes of files are, and do what the user chooses. */
export async function showFileStates(
  tools: IFileTools,
  paths: readonly string[]
): Promise<ReadonlyJSONObject | null> {
  const { client, hyperPod } = tools;
  const { trans } = hyperPod;
  const files = await statesOrNone(tools, paths);
  if (files === null) {
    return null;
  }
  const fitting = ACTIONS.filter(action =>
    files.some(file => FITS[action].includes(file.state) && isOpen(file))
  );
  const action = await ask(tools, files, fitting);
  if (action === null) {
    return { action: null, files: files };
  }
  const chosen = files
    .filter(file => FITS[action].includes(file.state) && isOpen(file))
    .map(file => file.path);
  const results = await tried(tools, () => client.act(action, chosen));
  if (results === null) {
    return null;
  }
  await showDialog({
    title: actionText(action, trans),
    body: new FileStates(results, null, trans),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
  return { action, files: results };
}

interface IChoice {
  /** The cluster; empty for the server's own machine. */
  readonly cluster: string;
  readonly label: string;
  readonly path: string;
}

/** Why no other machine has the path, as where it does not lie on the storage partition; null where one does, or there are none. */
function whyUnseen(
  { clusters: sides }: IPaths,
  cluster: string | null
): readonly string[] | null {
  const others = sides.filter(
    one => one.side !== 'here' && [one.cluster, null].includes(cluster)
  );
  return others.length === 0 || others.some(one => one.there !== null)
    ? null
    : [...new Set(others.flatMap(one => one.reason ?? []))];
}

function sidesOf(tools: IFileTools, paths: IPaths): readonly IChoice[] {
  const { trans } = tools.hyperPod;
  const here = paths.studio ? trans.__('Studio') : trans.__('this server');
  const choices = [{ cluster: '', label: here, path: paths.here }];
  for (const { cluster, side, there } of paths.clusters) {
    if (there !== null && side !== 'here') {
      const label =
        side === 'pod'
          ? trans.__('pods of %1', cluster)
          : trans.__('nodes of %1', cluster);
      choices.push({ cluster, label, path: there });
    }
  }
  return choices;
}

async function choose(
  tools: IFileTools,
  sides: readonly IChoice[]
): Promise<IChoice | null> {
  const { trans } = tools.hyperPod;
  const items = sides.map(side => `${side.label}: ${side.path}`);
  const { value } = await InputDialog.getItem({
    title: trans.__('Copy Path for a Cluster'),
    label: trans.__('Path on the cluster'),
    items,
    // The first one is where the user is already.
    current: 1,
    okLabel: trans.__('Copy')
  });
  return value === null ? null : (sides[items.indexOf(value)] ?? null);
}

function only(sides: readonly IChoice[]): IChoice | null {
  return sides.length === 1 ? sides[0] : null;
}

/** States, or files of which none is known where nothing here can tell. */
async function statesOrNone(
  tools: IFileTools,
  paths: readonly string[]
): Promise<readonly IStoredFile[] | null> {
  try {
    return await tools.client.states(paths);
  } catch (reason) {
    const error = ApiError.of(reason);
    if (error.code !== 'no_lfs') {
      tell(tools, error);
      return null;
    }
    const why = { reason: error.message, hint: null };
    const unknown = { done: 'unknown', state: null, progress: null, ...why };
    return paths.map(path => ({ path, ...unknown }));
  }
}

/** Whether something may be done to a file: not where looking at it was refused. */
function isOpen(file: IStoredFile): boolean {
  return file.done !== 'refused';
}

async function ask(
  tools: IFileTools,
  files: readonly IStoredFile[],
  actions: readonly FileAction[]
): Promise<FileAction | null> {
  const { trans } = tools.hyperPod;
  const buttons = actions.map(action =>
    Dialog.okButton({ label: actionText(action, trans), actions: [action] })
  );
  const { button } = await showDialog({
    title: trans.__('File Location'),
    body: new FileStates(files, actions, trans),
    buttons: [Dialog.cancelButton({ label: trans.__('Close') }), ...buttons],
    defaultButton: 0
  });
  return ACTIONS.find(action => button.actions.includes(action)) ?? null;
}

/** What came of it; null, once the user was told, when nothing did. */
async function tried<T>(
  tools: IFileTools,
  work: () => Promise<T>
): Promise<T | null> {
  try {
    return await work();
  } catch (reason) {
    tell(tools, ApiError.of(reason));
    return null;
  }
}

function tell(tools: IFileTools, error: ApiError): void {
  const words = [errorText(error, tools.hyperPod.trans), error.hint];
  Notification.error(words.filter(Boolean).join('\n'));
}
