import {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { failed, pageActions, whyText } from '../runs/actions';
import { IRun } from '../runs/types';
import { IHyperPod } from '../tokens';
import { MIME_TYPE } from './data';
import { RunOutput } from './renderer';
import type { ICardActions, RunCard } from './runCard';

/** Before plain text, which every output of ours has too. */
const RANK = 40;

/**
 * Shows the live log in a cell's output, wherever the host shows outputs.
 */
export const outputPlugin: JupyterFrontEndPlugin<void> = {
  id: 'hyperpod_jlab:output',
  description: 'Shows the live log of a run in the output of its cell.',
  autoStart: true,
  requires: [IHyperPod, IRenderMimeRegistry],
  activate: (
    app: JupyterFrontEnd,
    hyperPod: IHyperPod,
    registry: IRenderMimeRegistry
  ): void => {
    const { trans } = hyperPod;
    const makeCard = (runId: string, name: string, output: RunOutput) =>
      cardFor(app, hyperPod, { runId, name, output });
    registry.addFactory({
      // It asks nothing of an untrusted notebook before a click.
      safe: true,
      mimeTypes: [MIME_TYPE],
      defaultRank: RANK,
      createRenderer: () => new RunOutput({ trans, makeCard })
    });
  }
};

async function cardFor(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  what: { runId: string; name: string; output: RunOutput }
): Promise<RunCard> {
  const { logs, runs, trans } = hyperPod;
  const { RunCard } = await import('./runCard');
  const { act, copyCommand, openPlace } = pageActions(app, hyperPod);
  const actions: ICardActions = {
    cancel: run => act(run, 'cancel'),
    copyCommand,
    openPlace,
    open: run => void hyperPod.openRun(run.run_id),
    freeze: run => freeze(hyperPod, what.output, run)
  };
  const { name, runId } = what;
  return new RunCard({
    runId,
    name,
    runs,
    logClient: logs,
    looks: hyperPod.preferences.value,
    actions,
    trans
  });
}

async function freeze(
  hyperPod: IHyperPod,
  output: RunOutput,
  run: IRun
): Promise<void> {
  const { logs: client, trans } = hyperPod;
  try {
    const { cellOf, freezeLog } = await import('./frozen');
    const cell = cellOf(output);
    if (cell) {
      await freezeLog({ cell, run, client, trans });
    } else {
      Notification.warning(trans.__('No cell found for the log.'));
    }
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('Cannot read the log. %1', why));
  }
}
