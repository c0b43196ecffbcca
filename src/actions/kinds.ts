import { TranslationBundle } from '@jupyterlab/translation';

import type { Schema } from '../api';

/** Actions on an existing run or job. */
export type ActionKind = Schema<'JobAction'>;

/** All of them, in the order of their buttons. */
export const ACTIONS: readonly ActionKind[] = [
  'cancel',
  'hold',
  'release',
  'requeue',
  'change'
];

/**
 * What is changed about a run or a job; what is null stays.
 */
export interface IChange {
  /** The new time limit, as it was typed: 90m, 2h. */
  readonly time_limit: string | null;
  readonly queue: string | null;
}

/** What of a run or a job can be changed, in the order of the fields. */
export const CHANGES = ['time_limit', 'queue'] as const;

export type ChangeField = (typeof CHANGES)[number];

/** Those of a cluster's actions that this page knows. */
export function knownActions(names: readonly string[]): readonly ActionKind[] {
  return ACTIONS.filter(action => names.includes(action));
}

/** The actions that fit a run's or job's state, of those that its cluster can do. */
export function fittingActions(
  able: readonly ActionKind[],
  state: string,
  isHeld: boolean
): readonly ActionKind[] {
  const fits: Readonly<Record<ActionKind, boolean>> = {
    cancel: ['submitting', 'waiting', 'running', 'unknown'].includes(state),
    hold: state === 'waiting' && !isHeld,
    release: state === 'waiting' && isHeld,
    requeue: state === 'running',
    change: state === 'waiting' || state === 'running'
  };
  return able.filter(action => fits[action]);
}

/** The words of an action's button. */
export function actionLabel(
  action: ActionKind,
  trans: TranslationBundle
): string {
  const labels: Readonly<Record<ActionKind, string>> = {
    cancel: trans.__('Cancel'),
    hold: trans.__('Hold'),
    release: trans.__('Release'),
    requeue: trans.__('Requeue'),
    change: trans.__('Change…')
  };
  return labels[action];
}

/** What an action does, for its button's hint. */
export function actionCaption(
  action: ActionKind,
  trans: TranslationBundle
): string {
  const captions: Readonly<Record<ActionKind, string>> = {
    cancel: trans.__(
      'Cancel running jobs and remove waiting jobs from the queue'
    ),
    hold: trans.__('Keep waiting jobs from starting until you release them'),
    release: trans.__('Allow held jobs to start'),
    requeue: trans.__('Stop running jobs and put them back in the queue'),
    change: trans.__('Change settings such as the queue or the time limit')
  };
  return captions[action];
}

/** Said of one that it was done to. */
export function doneText(
  action: ActionKind,
  name: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<ActionKind, string>> = {
    cancel: trans.__('%1 was cancelled.', name),
    hold: trans.__('%1 was held.', name),
    release: trans.__('%1 was released.', name),
    requeue: trans.__('%1 was requeued.', name),
    change: trans.__('%1 was changed.', name)
  };
  return texts[action];
}

/** Said of one that it could not be done to, and why. */
export function failedText(
  action: ActionKind,
  name: string,
  why: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<ActionKind, string>> = {
    cancel: trans.__('%1 could not be cancelled. %2', name, why),
    hold: trans.__('%1 could not be held. %2', name, why),
    release: trans.__('%1 could not be released. %2', name, why),
    requeue: trans.__('%1 could not be requeued. %2', name, why),
    change: trans.__('%1 could not be changed. %2', name, why)
  };
  return texts[action];
}
