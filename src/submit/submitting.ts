import { Dialog, showDialog } from '@jupyterlab/apputils';

import { ApiError } from '../api';
import { IRun } from '../runs/types';
import { sentenceText } from '../runs/words';
import { CommandIDs } from '../tokens';
import { parametersOf } from './draft';
import { draftKey } from './drafts';
import { SubmitHistory } from './history';
import { IStart } from './memory';
import type { ISubmitOptions } from './options';
import { COST_NOT_CONFIRMED } from './overLimit';
import { newRunId } from './runId';
import { sendRun } from './sending';
import { baseOf, ISubmitSource } from './source';
import { ITools } from './tools';
import { IPreview, ISubmitBody } from './types';

/** Ask in a dialog how to run something, and run it; null when the user would rather not. With `findSource` the dialog asks what to run too. */
export async function askAndSubmit(
  tools: ITools,
  source: ISubmitSource,
  options: Pick<ISubmitOptions, 'start' | 'findSource' | 'isWhole'> = {}
): Promise<IRun | null> {
  const { cells, client, hyperPod, memory } = tools;
  const { clusterClient, runClient, trans } = hyperPod;
  const [{ SubmitDialog }, { SubmitModel }] = await Promise.all([
    import('./dialog'),
    import('./model')
  ]);
  const key = draftKey(source, options.start);
  const kept = tools.drafts.get(key);
  const model = new SubmitModel({
    source: options.findSource && kept ? kept.source : source,
    kept,
    client,
    clusters: clusterClient,
    history: new SubmitHistory({ cells, memory, runClient }),
    memory,
    trans,
    preferences: hyperPod.preferences.value,
    ...options
  });
  const dialog = new SubmitDialog(model, trans);
  void model.load();
  await dialog.launch();
  const run = await dialog.sent();
  if (run) {
    tools.drafts.delete(key);
  } else if (model.isTouched) {
    tools.drafts.set(key, model.kept);
  }
  model.dispose();
  if (run) {
    await learn(tools, run);
    await show(tools, run);
  }
  return run;
}

/**
 * Run something at once, as a program wants it: rejects with the error that says why not.
 *
 * The same once more is the same run until the server has said yes or no to it: a lost answer makes no second run.
 */
export async function submitNow(
  tools: ITools,
  source: ISubmitSource,
  start: IStart
): Promise<IRun> {
  const body = plainBody(source, start);
  const run = await sendOnce(tools, body).catch(async (reason: unknown) => {
    if (await agreesToCost(tools, ApiError.of(reason))) {
      return sendOnce(tools, { ...body, accept_cost: true });
    }
    throw reason;
  });
  if (source.path !== null) {
    const last = { ...start, runId: run.run_id, cluster: run.cluster };
    await tools.memory.remember(source.path, last).catch(() => undefined);
  }
  await learn(tools, run);
  return run;
}

/** Where a run was refused because it may cost more than the limit, ask whether to submit it anyway. */
async function agreesToCost(
  { hyperPod: { trans } }: ITools,
  { code, message }: ApiError
): Promise<boolean> {
  if (code !== COST_NOT_CONFIRMED) {
    return false;
  }
  const { button } = await showDialog({
    title: trans.__('Submit this run?'),
    body: sentenceText(`${message}.`),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Submit anyway') })
    ]
  });
  return button.accept;
}

async function sendOnce(tools: ITools, body: ISubmitBody): Promise<IRun> {
  const { client, pauses, runIds } = tools;
  const request = JSON.stringify({ ...body, run_id: '' });
  const named = { ...body, run_id: runIds.of(request) };
  try {
    const run = await sendRun(client, named, pauses);
    runIds.settle(request);
    return run;
  } catch (reason) {
    if (ApiError.of(reason).isRefused) {
      runIds.settle(request);
    }
    throw reason;
  }
}

/** Exactly what would run. */
export function previewNow(
  tools: ITools,
  source: ISubmitSource,
  start: IStart
): Promise<IPreview> {
  return tools.client.preview(plainBody(source, start));
}

function plainBody(source: ISubmitSource, start: IStart): ISubmitBody {
  const { cellIds, cloneOf } = source;
  return {
    run_id: newRunId(),
    cluster: start.cluster,
    spec: {
      ...start.spec,
      source: {
        ...parametersOf(source, start.spec),
        ...source.spec,
        ...(cellIds !== null && { cell_ids: cellIds })
      }
    },
    base: cloneOf === null ? baseOf(source) : undefined,
    notebook: cloneOf === null ? source.view?.().document : undefined,
    clone_of: cloneOf ?? undefined
  };
}

/** Whoever follows the runs learns of it at once, not with the server's event. */
async function learn({ hyperPod }: ITools, run: IRun): Promise<void> {
  hyperPod.runs.start();
  await hyperPod.runs.get(run.run_id).catch(() => undefined);
}

/** Show what the user wants to see of a run that was submitted. */
async function show({ app, hyperPod }: ITools, run: IRun): Promise<void> {
  const { afterSubmit } = hyperPod.preferences.value;
  const isInNotebook =
    afterSubmit === 'notebook' &&
    app.commands.hasCommand(CommandIDs.showLogInNotebook) &&
    (await app.commands.execute(CommandIDs.showLogInNotebook, {
      runId: run.run_id
    })) === true;
  if (afterSubmit !== 'stay' && !isInNotebook) {
    await hyperPod.openRun(run.run_id, { pin: true });
  }
}
