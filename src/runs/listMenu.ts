import { TranslationBundle } from '@jupyterlab/translation';
import {
  copyIcon,
  deleteIcon,
  listIcon,
  redoIcon,
  stopIcon
} from '@jupyterlab/ui-components';

import { fittingActions } from '../actions/kinds';
import type { IMenuEntry } from '../components/menu';
import { IRun, isEnded } from './types';

/** Runs in one comparison. */
export const MOST_COMPARED = 20;

/**
 * What can be done to the runs of a list. What is null has no command here.
 */
export interface IListActions {
  /** Open a run's page, as a preview unless it is to be pinned. */
  openRun(runId: string, pin?: boolean): void;
  /** Cancel runs, once the user has agreed. */
  cancel(runs: readonly IRun[]): void;
  /** Delete runs that have ended, once the user has agreed. */
  remove(runs: readonly IRun[]): void;
  readonly runAgain: ((run: IRun) => void) | null;
  /** Show the curves of runs over each other, and what differs. */
  readonly compare: ((runs: readonly IRun[]) => void) | null;
  /** Copy a run's id. */
  copyId(run: IRun): void;
}

/** Whether a run can be cancelled. */
export function canCancel(run: IRun): boolean {
  return (
    run.own &&
    run.reason_code !== 'cancelling' &&
    fittingActions(['cancel'], run.state, false).length > 0
  );
}

/** Whether a run can be deleted. */
export function canDelete({ own, parent, state }: IRun): boolean {
  return own && parent === null && isEnded(state);
}

/** What the context menu of a run offers; with several that are chosen, what fits them all. */
export function runEntries(
  runs: readonly IRun[],
  actions: IListActions,
  trans: TranslationBundle
): readonly (IMenuEntry | null)[] {
  const [run] = runs;
  const { runAgain } = actions;
  const active = runs.filter(canCancel);
  const ended = runs.filter(canDelete);
  const entries: (IMenuEntry | null)[] = [];
  if (runs.length === 1) {
    entries.push({
      label: trans.__('Open'),
      icon: listIcon,
      run: () => actions.openRun(run.run_id)
    });
    if (runAgain) {
      entries.push({
        label: trans.__('Run Again…'),
        icon: redoIcon,
        run: () => runAgain(run)
      });
    }
    entries.push({
      label: trans.__('Copy Run Id'),
      icon: copyIcon,
      run: () => actions.copyId(run)
    });
  } else {
    entries.push({
      label: trans.__('Open %1 Runs', runs.length),
      icon: listIcon,
      run: () => runs.forEach(one => actions.openRun(one.run_id, true))
    });
    const { compare } = actions;
    if (compare && runs.length <= MOST_COMPARED) {
      entries.push({
        label: trans.__('Compare %1 Runs', runs.length),
        icon: listIcon,
        run: () => compare(runs)
      });
    }
  }
  if (active.length > 0) {
    entries.push(null, {
      label:
        active.length === 1
          ? trans.__('Cancel Run…')
          : trans.__('Cancel %1 Runs…', active.length),
      icon: stopIcon,
      run: () => actions.cancel(active)
    });
  }
  if (ended.length > 0) {
    entries.push(null, {
      label:
        ended.length === 1
          ? trans.__('Delete Run…')
          : trans.__('Delete %1 Runs…', ended.length),
      icon: deleteIcon,
      run: () => actions.remove(ended)
    });
  }
  return entries;
}
