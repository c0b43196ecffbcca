import { JSONObject } from '@lumino/coreutils';

import { IRun } from '../runs/types';
import { SubmitHistory } from './history';
import { IStart } from './memory';
import { newRunId } from './runId';
import { sendRun } from './sending';
import { baseOf, ISubmitSource } from './source';
import { ITools } from './tools';
import { IPreview, ISubmitBody } from './types';

/** Ask in a dialog how to run something, and run it; null when the user would rather not. */
export async function askAndSubmit(
  tools: ITools,
  source: ISubmitSource,
  start?: IStart
): Promise<JSONObject | null> {
  const { cells, client, hyperPod, memory } = tools;
  const { clusterClient, runClient, trans } = hyperPod;
  const [{ SubmitDialog }, { SubmitModel }] = await Promise.all([
    import('./dialog'),
    import('./model')
  ]);
  const model = new SubmitModel({
    source,
    client,
    clusters: clusterClient,
    history: new SubmitHistory({ cells, memory, runClient }),
    memory,
    trans,
    start
  });
  const dialog = new SubmitDialog(model, trans);
  void model.load();
  await dialog.launch();
  const run = await dialog.sent();
  return run && afterSubmit(tools, run, true);
}

/** Run something at once, as a program wants it: rejects with the error that says why not. */
export async function submitNow(
  tools: ITools,
  source: ISubmitSource,
  start: IStart
): Promise<JSONObject> {
  const run = await sendRun(tools.client, plainBody(source, start));
  if (source.path !== null) {
    const last = { ...start, runId: run.runId, cluster: run.cluster };
    await tools.memory.remember(source.path, last).catch(() => undefined);
  }
  return afterSubmit(tools, run, false);
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
      source:
        cellIds === null ? source.spec : { ...source.spec, cell_ids: cellIds }
    },
    base: cloneOf === null ? baseOf(source) : undefined,
    notebook: cloneOf === null ? source.view?.().document : undefined,
    clone_of: cloneOf ?? undefined
  };
}

async function afterSubmit(
  tools: ITools,
  run: IRun,
  open: boolean
): Promise<JSONObject> {
  const { hyperPod } = tools;
  hyperPod.runs.start();
  // Whoever follows the runs learns of it at once, not with the server's event.
  await hyperPod.runs.get(run.runId).catch(() => undefined);
  if (open) {
    await hyperPod.openRun(run.runId);
  }
  return run.plain as JSONObject;
}
