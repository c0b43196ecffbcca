import { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReadonlyJSONObject } from '@lumino/coreutils';

import {
  ActionKind,
  CHANGES,
  failedText,
  IChange,
  knownActions
} from '../actions/kinds';
import { askForChange, limitText, mayRequeue } from '../actions/questions';
import { ApiError, isRecord } from '../api';
import type { ICluster } from '../clusters/types';
import { errorText } from '../components/errorMessage';
import type { ICellPlace } from '../logs/place';
import { CommandIDs, IHyperPod } from '../tokens';
import type { IRunActions } from './header';
import type { IListActions } from './listMenu';
import { runNames } from './names';
import { IRun } from './types';
import type { IStartNow } from './whyItWaits';

/** How long a short word of thanks stays. */
const BRIEFLY = 3000;

/** How long it stays to be read that something failed: without this it would only be counted. */
const LONG = 10_000;

/**
 * What the buttons of a run page do in this application.
 */
export function pageActions(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod
): IRunActions {
  const { runClient, trans } = hyperPod;
  const look = clustersOf(hyperPod);
  return {
    act: (run, action) => void actAfterQuestion(hyperPod, run, action),
    able: cluster =>
      look(cluster).then(found =>
        found ? knownActions(found.actions) : ['cancel']
      ),
    hasShells: cluster =>
      look(cluster).then(found => found?.actions.includes('shells') ?? false),
    // AWS measures nodes of clusters on EKS; which of those are HyperPod's only AWS knows, which is not asked for a tab.
    // The dialog is another plugin's, which may be switched off.
    clone: app.commands.hasCommand(CommandIDs.submit)
      ? run => void runAgain(app, hyperPod, run)
      : null,
    runNow: app.commands.hasCommand(CommandIDs.submit)
      ? run => void runNow(app, hyperPod, run)
      : null,
    delete: run => void deleteRuns(hyperPod, [run]),
    copyCommand: run => {
      Clipboard.copyToSystem(`hpj logs -f ${run.run_id}`);
      Notification.info(
        trans.__('Command copied. Paste it in a terminal to follow the log.'),
        { autoClose: BRIEFLY }
      );
    },
    copyShell: command => {
      Clipboard.copyToSystem(command);
      Notification.info(
        trans.__('Command copied. Paste it in a terminal to open the shell.'),
        { autoClose: BRIEFLY }
      );
    },
    openMlflow: run =>
      void openMlflow(() => runClient.mlflowLink(run.run_id), trans),
    openUsage: app.commands.hasCommand(CommandIDs.openUsage)
      ? cluster => void app.commands.execute(CommandIDs.openUsage, { cluster })
      : null,
    openRun: (runId, pin = false) => void hyperPod.openRun(runId, { pin }),
    openSource: run => void openSource(app, hyperPod, run),
    openExecuted: (run, rank) => void openExecuted(app, hyperPod, run, rank),
    switchTo: (run, change) => switchTo(app, hyperPod, run, change),
    openPlace: (runId, place) => void openPlace(app, hyperPod, runId, place)
  };
}

/**
 * What is done to the runs of a list in this application. Commands may come after the list, so they are looked for when they are needed.
 */
export function listActions(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod
): IListActions {
  const { trans } = hyperPod;
  return {
    openRun: (runId, pin = false) => void hyperPod.openRun(runId, { pin }),
    cancel: runs => void cancelRuns(hyperPod, runs),
    remove: runs => void deleteRuns(hyperPod, runs),
    get runAgain() {
      return app.commands.hasCommand(CommandIDs.submit)
        ? (run: IRun) => void runAgain(app, hyperPod, run)
        : null;
    },
    get compare() {
      return app.commands.hasCommand(CommandIDs.compareRuns)
        ? (runs: readonly IRun[]) =>
            void app.commands.execute(CommandIDs.compareRuns, {
              runIds: runs.map(run => run.run_id)
            })
        : null;
    },
    copyId: ({ run_id: runId }) => {
      Clipboard.copyToSystem(runId);
      Notification.info(trans.__('Copied: %1', runId), { autoClose: BRIEFLY });
    }
  };
}

/** Show a run's page in MLflow in another tab, once the server has said where it is. */
export async function openMlflow(
  ask: () => Promise<string>,
  trans: TranslationBundle
): Promise<void> {
  // At once: browsers refuse a tab that comes after the click.
  const tab = window.open('', '_blank');
  if (tab === null) {
    failed(
      trans.__(
        'The browser blocked the new tab. Allow pop-ups for this page and try again.'
      )
    );
    return;
  }
  // The page must not reach the one that opened it.
  tab.opener = null;
  try {
    const address = await ask();
    // Such as `javascript:`, which would run with the rights of this page.
    if (!/^https?:$/.test(new URL(address, document.baseURI).protocol)) {
      throw new Error(trans.__('The answer is not the address of a page.'));
    }
    tab.location.replace(address);
  } catch (reason) {
    tab.close();
    failed(trans.__('Cannot open MLflow. %1', whyText(reason, trans)));
  }
}

/** Ask how a run is to run once more. */
export async function runAgain(
  app: JupyterFrontEnd,
  { runs, trans }: IHyperPod,
  run: IRun
): Promise<void> {
  try {
    await app.commands.execute(CommandIDs.submit, { cloneOf: run.run_id });
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('Cannot run %1 again. %2', run.name, why));
    // It may be gone, which its page should say then.
    await runs.get(run.run_id).catch(() => undefined);
  }
}

/** Ask how the notebook that a run came from is to run, as it is now: the same cells with the same settings. */
export async function runNow(
  app: JupyterFrontEnd,
  { runClient, trans }: IHyperPod,
  run: IRun
): Promise<void> {
  try {
    const { source, ...settings } = await runClient.spec(run.run_id);
    const cells = isRecord(source) ? source.cell_ids : null;
    await app.commands.execute(CommandIDs.submit, {
      path: run.notebook,
      cluster: run.cluster,
      spec: settings as ReadonlyJSONObject,
      ...(Array.isArray(cells) && { cells: cells.map(String) })
    });
  } catch (reason) {
    failed(
      trans.__('Cannot run %1 again. %2', run.name, whyText(reason, trans))
    );
  }
}

/** Show the notebook that a run came from, at the first cell that ran. */
export async function openSource(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  run: IRun
): Promise<void> {
  const { runClient } = hyperPod;
  const cells = await runClient.cells(run.run_id).catch(() => []);
  if (cells.length > 0) {
    const place = { cell: cells[0].number, line: 1 };
    await openPlace(app, hyperPod, run.run_id, place);
  } else {
    await app.commands.execute('docmanager:open', { path: run.notebook });
  }
}

/** Save the executed notebook beside the one that was submitted, and open it. A file that exists stays. */
export async function openExecuted(
  app: JupyterFrontEnd,
  { runClient, trans }: IHyperPod,
  { run_id: runId }: IRun,
  rank = 0
): Promise<void> {
  const { contents } = app.serviceManager;
  try {
    const { document, name } = await runClient.notebook(runId, rank);
    const folder = PathExt.dirname((await runClient.notebookPath(runId)) ?? '');
    const stem = PathExt.basename(name, PathExt.extname(name));
    const taken = new Set(fileNames((await contents.get(folder)).content));
    const base = [stem, runId, ...(rank > 0 ? [`rank-${rank}`] : [])].join('-');
    let file = `${base}.ipynb`;
    for (let count = 2; taken.has(file); count++) {
      file = `${base}-${count}.ipynb`;
    }
    const path = PathExt.join(folder, file);
    await contents.save(path, {
      type: 'notebook',
      format: 'json',
      content: document
    });
    await app.commands.execute('docmanager:open', { path });
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('The executed notebook could not be opened. %1', why));
  }
}

/** The names in a folder, as the server lists them. */
function fileNames(content: unknown): readonly string[] {
  const entries: unknown[] = Array.isArray(content) ? content : [];
  return entries.map(entry => (isRecord(entry) ? String(entry.name) : ''));
}

/** Start a waiting run in another way: changed while it waits if possible, otherwise submitted again in its place. */
export async function switchTo(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  run: IRun,
  change: IStartNow
): Promise<void> {
  const { runClient, runs, trans } = hyperPod;
  const { gpus_per_node: gpus, nodes, queue, time_limit: limit } = change;
  try {
    const cluster = await clustersOf(hyperPod)(run.cluster);
    const changes = cluster?.changes ?? [];
    const canChange =
      nodes === null &&
      gpus === null &&
      (queue === null || changes.includes('queue')) &&
      (limit === null || changes.includes('time_limit'));
    if (canChange) {
      const timeLimit = limit === null ? null : `${limit}s`;
      await runs.act(run.run_id, 'change', { queue, time_limit: timeLimit });
      return;
    }
    const spec = changedSpec(await runClient.spec(run.run_id), change);
    const sent: unknown = await app.commands.execute(CommandIDs.submit, {
      cloneOf: run.run_id,
      spec: spec as ReadonlyJSONObject,
      run: true
    });
    // Only now: nothing is lost when the new one was refused.
    await runs.act(run.run_id, 'cancel');
    if (isRecord(sent) && typeof sent.run_id === 'string') {
      await hyperPod.openRun(sent.run_id, { pin: true });
    }
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('%1 could not be changed. %2', run.name, why));
  }
}

/** The settings that a change replaces, whole. */
function changedSpec(
  spec: Readonly<Record<string, unknown>>,
  change: IStartNow
): Record<string, unknown> {
  const { gpus_per_node: gpus, nodes, queue, time_limit: limit } = change;
  const resources = isRecord(spec.resources) ? { ...spec.resources } : {};
  if (nodes !== null) {
    resources.nodes = nodes;
  }
  if (gpus !== null && isRecord(resources.accelerators)) {
    resources.accelerators = { ...resources.accelerators, count: gpus };
  }
  if (gpus !== null) {
    const listed = isRecord(resources.accelerators);
    const before = isRecord(spec.resources) ? spec.resources : {};
    const had = isRecord(before.accelerators)
      ? before.accelerators.count
      : before.gpus_per_node;
    // One rank per GPU stays one rank per GPU; another number was chosen by the user.
    if (resources.processes_per_node === had) {
      resources.processes_per_node = null;
    }
    resources.gpus_per_node = listed ? null : gpus;
  }
  return {
    resources,
    ...(queue !== null && { queue }),
    ...(limit !== null && { time_limit: limit })
  };
}

/** Show a line of a cell that ran. */
export async function openPlace(
  app: JupyterFrontEnd,
  { trans }: IHyperPod,
  runId: string,
  place: ICellPlace
): Promise<void> {
  try {
    const { cell, line } = place;
    await app.commands.execute(CommandIDs.openCellLine, { runId, cell, line });
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('Cannot show cell %1. %2', place.cell, why));
  }
}

/** Do something to a run, once the user has said what has to be asked before. */
export async function actAfterQuestion(
  hyperPod: IHyperPod,
  run: IRun,
  action: ActionKind
): Promise<void> {
  const { clusterClient, runs, trans } = hyperPod;
  let change: IChange | null = null;
  if (action === 'cancel' && !(await mayCancel(run, hyperPod))) {
    return;
  }
  if (action === 'requeue' && !(await mayRequeue(run.name, trans))) {
    return;
  }
  if (action === 'change') {
    const queues = clusterClient.queues(run.cluster);
    const [there, now] = await Promise.all([
      clustersOf(hyperPod)(run.cluster),
      hyperPod.runClient.overview(run.run_id).catch(() => null)
    ]);
    // What runs stays in its queue.
    const fields = (there?.changes ?? CHANGES).filter(
      name => name !== 'queue' || run.state !== 'running'
    );
    change = await askForChange(run.name, fields, queues, trans, {
      time_limit: limitText(now?.time_limit ?? null),
      queue: now?.queue ?? run.queue ?? ''
    });
    if (change === null) {
      return;
    }
  }
  try {
    await runs.act(run.run_id, action, change ?? undefined);
  } catch (reason) {
    failed(failedText(action, run.name, whyText(reason, trans), trans));
  }
}

/** Cancel runs, once the user has agreed. */
export async function cancelRuns(
  hyperPod: IHyperPod,
  chosen: readonly IRun[]
): Promise<void> {
  const { runs, trans } = hyperPod;
  if (chosen.length === 1) {
    await actAfterQuestion(hyperPod, chosen[0], 'cancel');
    return;
  }
  const answer = await showDialog({
    title: trans.__('Cancel %1 runs?', chosen.length),
    body: trans.__(
      '%1 will stop. Their output so far is kept. This can’t be undone.',
      namesOf(chosen, runs)
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Keep them') }),
      Dialog.warnButton({ label: trans.__('Cancel %1 runs', chosen.length) })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  const failures = await Promise.all(
    chosen.map(run =>
      runs.act(run.run_id, 'cancel').then(
        () => [],
        (reason: unknown) => [
          failedText('cancel', run.name, whyText(reason, trans), trans)
        ]
      )
    )
  );
  if (failures.flat().length > 0) {
    failed(failures.flat().join('\n'));
  }
}

/** Delete runs that have ended, once the user has agreed. */
export async function deleteRuns(
  { runs, trans }: IHyperPod,
  chosen: readonly IRun[]
): Promise<void> {
  const count = chosen.length;
  const label = trans._n('Delete run', 'Delete %1 runs', count);
  const answer = await showDialog({
    title: trans._n('Delete this run?', 'Delete %1 runs?', count),
    body: trans.__(
      'The code, logs and results of %1 will be removed. This can’t be undone.',
      namesOf(chosen, runs)
    ),
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label })]
  });
  if (!answer.button.accept) {
    return;
  }
  const failures: string[] = [];
  for (const { name, run_id: runId } of chosen) {
    try {
      await runs.delete(runId);
    } catch (reason) {
      const why = whyText(reason, trans);
      failures.push(trans.__('Cannot delete %1. %2', name, why));
    }
  }
  if (failures.length > 0) {
    failed(failures.join('\n'));
  }
}

/** Looks a cluster up; undefined where it can't be known. Those that were seen once are kept. */
function clustersOf({
  clusterClient
}: IHyperPod): (cluster: string) => Promise<ICluster | undefined> {
  const known = new Map<string, ICluster>();
  return async cluster => {
    if (!known.has(cluster)) {
      const found = await clusterClient.configured().catch(() => []);
      found.forEach(one => known.set(one.name, one));
    }
    return known.get(cluster);
  };
}

/** The names with which the lists tell runs apart. */
function namesOf(chosen: readonly IRun[], { runs }: IHyperPod['runs']): string {
  const names = runNames(runs);
  return chosen.map(run => names.get(run.run_id) ?? run.name).join(', ');
}

async function mayCancel(
  run: IRun,
  { runs, trans }: IHyperPod
): Promise<boolean> {
  const name = namesOf([run], runs);
  const isWaiting = run.state === 'waiting';
  const answer = await showDialog({
    title: trans.__('Cancel this run?'),
    body: isWaiting
      ? trans.__('%1 will leave the queue. This can’t be undone.', name)
      : trans.__(
          '%1 will stop. Its output so far is kept. This can’t be undone.',
          name
        ),
    buttons: [
      Dialog.cancelButton({
        label: isWaiting ? trans.__('Keep waiting') : trans.__('Let it run')
      }),
      Dialog.warnButton({ label: trans.__('Cancel run') })
    ]
  });
  return answer.button.accept;
}

/** Say that an action failed: seen for a while, and kept in the list of notifications. */
export function failed(text: string): void {
  Notification.error(text, { autoClose: LONG });
}

/** Why something failed. */
export function whyText(reason: unknown, trans: TranslationBundle): string {
  if (reason instanceof ApiError) {
    return errorText(reason, trans);
  }
  return reason instanceof Error ? reason.message : '';
}
