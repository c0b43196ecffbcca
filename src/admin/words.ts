import { TranslationBundle } from '@jupyterlab/translation';

import { FolderMaker } from './folders';
import { IAsked, IDrift, IFileSystem, IPlan, IWork } from './types';

/** How a step is. */
export function stepStateText(state: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    'to-do': trans.__('to do'),
    waits: trans.__('waiting'),
    blocked: trans.__('blocked'),
    'as-wanted': trans.__('up to date'),
    done: trans.__('done'),
    failed: trans.__('failed'),
    'not-begun': trans.__('not started')
  };
  return texts[state] ?? state;
}

/** Names that a heading lists; of more it says how many. */
const MOST_NAMES = 3;

/** What a plan is to do, and nothing of whether it is done. */
export function askedText(asked: IAsked, trans: TranslationBundle): string {
  const { domain, mode, profiles, shared_path: sharedPath } = asked;
  if (profiles === null) {
    switch (mode) {
      case 'shared':
        return trans.__(
          'mount the folder %2 for all users in %1',
          domain,
          sharedPath
        );
      case 'per-user':
        return trans.__('mount one folder per user profile in %1', domain);
      default:
        return trans.__('remove the storage setup in %1', domain);
    }
  }
  const who =
    profiles.length > MOST_NAMES
      ? trans._n('%1 user profile', '%1 user profiles', profiles.length)
      : profiles.join(', ');
  switch (mode) {
    case 'shared':
      return trans.__(
        'mount the folder %3 for %1 in %2',
        who,
        domain,
        sharedPath
      );
    case 'per-user':
      return trans.__(
        'mount one folder per user profile for %1 in %2',
        who,
        domain
      );
    default:
      return trans.__('remove the storage setup for %1 in %2', who, domain);
  }
}

/** The same as a question. */
export function questionText(asked: IAsked, trans: TranslationBundle): string {
  const text = askedText(asked, trans);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}?`;
}

/** What a plan is to do, with how much of it is done. */
export function headingText(
  asked: IAsked,
  work: IWork,
  trans: TranslationBundle
): string {
  const text = askedText(asked, trans);
  switch (work.state) {
    case 'planning':
    case 'planned':
    case 'checking':
      return trans.__('Plan: %1', text);
    case 'applying':
    case 'stopping':
      return trans.__('In progress: %1', text);
    default:
      break;
  }
  const { done, failed } = work.results;
  if (work.state === 'applied' && failed === 0 && leftOver(work) === 0) {
    return trans.__('Done: %1', text);
  }
  return done > 0
    ? trans.__('Partly done: %1', text)
    : trans.__('Not done: %1', text);
}

/** Number of steps that were not run: they wait, or are blocked. */
export function leftOver({ plan, results }: IWork): number {
  const { blocked = 0, to_do: toDo = 0, waits = 0 } = plan?.counts ?? {};
  // What waited for SageMaker alone was done all the same.
  const more = Math.max(0, results.done + results.failed - toDo);
  return Math.max(0, waits + blocked - more);
}

/** Which mode a domain is in. */
export function nowText(now: string | null, trans: TranslationBundle): string {
  switch (now) {
    case 'shared':
      return trans.__('All users share one folder.');
    case 'per-user':
      return trans.__('Each user profile has its own folder.');
    case 'both':
      return trans.__('Some users share a folder, others have their own.');
    default:
      return trans.__('This file system was not set up here.');
  }
}

/** Kinds of what is set, with how many are otherwise. */
export function driftText(drift: IDrift, trans: TranslationBundle): string {
  const { differ, total } = drift;
  const kind = kindText(drift.kind, trans);
  if (differ === 0) {
    return trans.__('%1: up to date', kind);
  }
  return total === 1
    ? trans.__('%1: needs a change', kind)
    : trans.__('%1: %2 of %3 need a change', kind, differ, total);
}

function kindText(kind: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    domain: trans.__('Defaults for users'),
    'space defaults': trans.__('Defaults for shared spaces'),
    profile: trans.__('User profiles'),
    space: trans.__('Spaces'),
    folder: trans.__('Folders'),
    'network interface': trans.__('Network interfaces'),
    lifecycle: trans.__('Startup scripts'),
    apply: trans.__('Unfinished changes')
  };
  return texts[kind] ?? kind;
}

/** Who looks at folders and makes them. */
export function folderMakerText(
  by: FolderMaker,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    here: trans.__('Jupyter server'),
    slurm: trans.__('Slurm job'),
    kubernetes: trans.__('Kubernetes Job')
  };
  return texts[by] ?? trans.__('none');
}

/** Whether profiles wait because their folders are not checked. */
export function isWaitingForFolders(
  asked: IAsked | null,
  plan: IPlan
): boolean {
  return (
    asked?.mode === 'per-user' &&
    asked.folders.by === 'none' &&
    plan.drift.some(({ differ, kind }) => kind === 'profile' && differ > 0)
  );
}

/** How bad a finding is. */
export function findingText(level: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    error: trans.__('error'),
    warning: trans.__('warning'),
    info: trans.__('note')
  };
  return texts[level] ?? level;
}

/** What a statement is about. */
export function topicText(topic: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    data: trans.__('Files'),
    isolation: trans.__('Access'),
    restarts: trans.__('Restarts'),
    'new profiles': trans.__('Future user profiles')
  };
  return texts[topic] ?? topic;
}

/** A file system by its names, with the clusters that mount it. */
export function fileSystemText(
  found: IFileSystem,
  trans: TranslationBundle
): string {
  const { clusters, id, name } = found;
  const named = name === null ? id : `${name} (${id})`;
  return clusters.length === 0
    ? named
    : trans.__('%1, used by %2', named, clusters.join(', '));
}

/** What a screen reader hears, and everybody reads: where it is, and how it ended. */
export function stateText(
  work: IWork | null,
  trans: TranslationBundle
): string {
  const { plan, read, results } = work ?? {};
  switch (work?.state) {
    case 'planning':
    case 'checking':
      return work.state === 'planning'
        ? trans.__(
            'Reading profiles and spaces: %1 of %2…',
            read?.done,
            read?.total
          )
        : trans.__(
            'Checking that nothing changed since the preview: %1 of %2 profiles and spaces…',
            read?.done,
            read?.total
          );
    case 'planned':
      return plan ? plannedText(plan, trans) : '';
    case 'applying':
      return trans.__(
        '%1 of %2 steps done…',
        results?.done,
        plan?.counts.to_do
      );
    default:
      return endText(work, trans);
  }
}

/** How it ended, or ends. */
function endText(work: IWork | null, trans: TranslationBundle): string {
  const { plan, results } = work ?? {};
  switch (work?.state) {
    case 'stopping':
      return trans.__('Stopping: finishing the steps in progress…');
    case 'applied':
      return results?.failed === 0
        ? [
            trans._n('Done: %1 step.', 'Done: %1 steps.', results.done),
            leftText(work, trans)
          ].join(' ')
        : trans.__(
            'Done: %1. Failed: %2. Preview the changes again to see what is left.',
            results?.done,
            results?.failed
          );
    case 'stopped':
      return plan
        ? trans.__(
            'Stopped. Done: %1. Failed: %2. Not started: %3. Preview the changes again to see what is left.',
            results?.done,
            results?.failed,
            results?.left
          )
        : trans.__('Stopped. Nothing was changed.');
    case 'failed':
      return plan
        ? trans.__(
            'The changes failed. Preview them again to see what is left.'
          )
        : trans.__('The preview failed.');
    default:
      return '';
  }
}

/** What was left as it is, if anything. */
function leftText(work: IWork | null, trans: TranslationBundle): string {
  const left = work === null ? 0 : leftOver(work);
  return left === 0
    ? ''
    : trans._n(
        '%1 was skipped because it is waiting or blocked.',
        '%1 were skipped because they are waiting or blocked.',
        left
      );
}

function plannedText(plan: IPlan, trans: TranslationBundle): string {
  const { blocked, to_do: toDo, waits } = plan.counts;
  const changed = plan.changed
    ? [
        trans.__(
          'Nothing was applied because the domain changed since the preview. Here is the new plan.'
        )
      ]
    : [];
  const all = toDo + waits + blocked === 0;
  const counts = all
    ? trans.__('Everything is up to date.')
    : trans.__(
        'To do: %1. Waiting: %2. Blocked: %3. Nothing has changed yet.',
        toDo,
        waits,
        blocked
      );
  return [...changed, counts].join(' ');
}
