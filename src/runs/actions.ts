import { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { ApiError } from '../api';
import { errorText } from '../components/errorMessage';
import type { ICellPlace } from '../logs/place';
import { CommandIDs, IHyperPod } from '../tokens';
import type { IRunActions } from './header';
import { IRun } from './types';

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
  const { trans } = hyperPod;
  return {
    cancel: run => void cancelAfterQuestion(hyperPod, run),
    // The dialog is another plugin's, which may be switched off.
    clone: app.commands.hasCommand(CommandIDs.submit)
      ? run => void runAgain(app, hyperPod, run)
      : null,
    copyCommand: run => {
      Clipboard.copyToSystem(`hpj logs -f ${run.runId}`);
      Notification.info(
        trans.__('Copied. Paste it in a terminal to follow the log there.'),
        { autoClose: BRIEFLY }
      );
    },
    openRun: runId => void hyperPod.openRun(runId),
    openPlace: (runId, place) => void openPlace(app, hyperPod, runId, place)
  };
}

/** Ask how a run is to run once more. */
export async function runAgain(
  app: JupyterFrontEnd,
  { runs, trans }: IHyperPod,
  run: IRun
): Promise<void> {
  try {
    await app.commands.execute(CommandIDs.submit, { cloneOf: run.runId });
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('%1 can’t be run again. %2', run.name, why));
    // It may be gone, which its page should say then.
    await runs.get(run.runId).catch(() => undefined);
  }
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
    failed(trans.__('Cell %1 can’t be shown. %2', place.cell, why));
  }
}

/** Cancel a run if the user really wants that. */
export async function cancelAfterQuestion(
  hyperPod: IHyperPod,
  run: IRun
): Promise<void> {
  const { runs, trans } = hyperPod;
  const answer = await showDialog({
    title: trans.__('Cancel this run?'),
    body: trans.__(
      '%1 ends; what it has written so far stays. This can’t be undone.',
      run.name
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Let it run') }),
      Dialog.warnButton({ label: trans.__('Cancel run') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  try {
    await runs.act(run.runId, 'cancel');
  } catch (reason) {
    const why = whyText(reason, trans);
    failed(trans.__('%1 could not be cancelled. %2', run.name, why));
  }
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
