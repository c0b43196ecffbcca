import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';

import { failed, pageActions, whyText } from '../runs/actions';
import { IRun } from '../runs/types';
import { IHyperPod } from '../tokens';
import type { RunCard } from './runCard';

/** A run's card, for a place in a notebook's cell. */
export async function makeCard(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  runId: string,
  name: string
): Promise<RunCard> {
  const { logs, preferences, runs, trans } = hyperPod;
  const { RunCard } = await import('./runCard');
  const { act, copyCommand, openExecuted, openPlace } = pageActions(
    app,
    hyperPod
  );
  const card: RunCard = new RunCard({
    runId,
    name,
    runs,
    logClient: logs,
    preferences,
    actions: {
      cancel: run => act(run, 'cancel'),
      copyCommand,
      openExecuted,
      openPlace,
      open: run => void hyperPod.openRun(run.run_id),
      freeze: run => freeze(hyperPod, card, run)
    },
    trans
  });
  return card;
}

async function freeze(
  hyperPod: IHyperPod,
  card: RunCard,
  run: IRun
): Promise<void> {
  const { logs: client, trans } = hyperPod;
  try {
    const { cellOf, freezeLog } = await import('./frozen');
    const cell = cellOf(card);
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
