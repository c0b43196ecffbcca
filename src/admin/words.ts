import { TranslationBundle } from '@jupyterlab/translation';

import { FolderMaker } from './folders';
import { IAsked, IDrift, IFileSystem, IPlan, IWork } from './types';

/** How a step is. */
export function stepStateText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'to-do':
      return trans.__('to do');
    case 'waits':
      return trans.__('waits');
    case 'blocked':
      return trans.__('blocked');
    case 'as-wanted':
      return trans.__('as wanted');
    case 'done':
      return trans.__('done');
    case 'failed':
      return trans.__('failed');
    case 'not-begun':
      return trans.__('not begun');
    default:
      return state;
  }
}

/** What a plan does, as a heading. */
export function askedText(asked: IAsked, trans: TranslationBundle): string {
  switch (asked.mode) {
    case 'shared':
      return trans.__(
        'Everybody in %1 shares the folder %2',
        asked.domain,
        asked.sharedPath
      );
    case 'per-user':
      return trans.__(
        'Each user profile in %1 has its own folder',
        asked.domain
      );
    default:
      return trans.__('Take back what was set in %1', asked.domain);
  }
}

/** Which mode a domain is in. */
export function nowText(now: string | null, trans: TranslationBundle): string {
  switch (now) {
    case 'shared':
      return trans.__('Now everybody shares one folder.');
    case 'per-user':
      return trans.__('Now each user profile has its own folder.');
    case 'both':
      return trans.__('Now some share a folder, and some have their own.');
    default:
      return trans.__('Nothing of this file system was set up from here yet.');
  }
}

/** Kinds of what is set, with how many are otherwise. */
export function driftText(drift: IDrift, trans: TranslationBundle): string {
  const { differ, total } = drift;
  const kind = kindText(drift.kind, trans);
  return differ === 0
    ? trans.__('%1: all %2 as wanted', kind, total)
    : trans.__('%1: %2 of %3 not as wanted', kind, differ, total);
}

function kindText(kind: string, trans: TranslationBundle): string {
  switch (kind) {
    case 'domain':
      return trans.__('Defaults for users');
    case 'space defaults':
      return trans.__('Defaults for shared spaces');
    case 'profile':
      return trans.__('User profiles');
    case 'space':
      return trans.__('Spaces');
    case 'folder':
      return trans.__('Folders');
    case 'network interface':
      return trans.__('Network interfaces');
    case 'lifecycle':
      return trans.__('Scripts that run at start');
    case 'apply':
      return trans.__('What was begun and has not ended');
    default:
      return kind;
  }
}

/** Who looks at folders and makes them. */
export function folderMakerText(
  by: FolderMaker,
  trans: TranslationBundle
): string {
  switch (by) {
    case 'here':
      return trans.__('the Jupyter server’s machine');
    case 'slurm':
      return trans.__('a job of the Slurm cluster');
    case 'kubernetes':
      return trans.__('a Job of the Kubernetes cluster');
    default:
      return trans.__('nobody');
  }
}

/** Whether user profiles wait because nobody looks at their folders. */
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
  switch (level) {
    case 'error':
      return trans.__('error');
    case 'warning':
      return trans.__('warning');
    case 'info':
      return trans.__('note');
    default:
      return level;
  }
}

/** What a statement is about. */
export function topicText(topic: string, trans: TranslationBundle): string {
  switch (topic) {
    case 'data':
      return trans.__('Files');
    case 'isolation':
      return trans.__('Who sees what');
    case 'restarts':
      return trans.__('What has to start anew');
    case 'new profiles':
      return trans.__('User profiles to come');
    default:
      return topic;
  }
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
    : trans.__('%1, of %2', named, clusters.join(', '));
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
            'Reading %1 of %2 profiles and spaces…',
            read?.done,
            read?.total
          )
        : trans.__(
            'Looking whether all is as it was shown: %1 of %2 profiles and spaces…',
            read?.done,
            read?.total
          );
    case 'planned':
      return plan ? plannedText(plan, trans) : '';
    case 'applying':
      return trans.__(
        '%1 of %2 steps are done…',
        results?.done,
        plan?.counts.toDo
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
      return trans.__('Stopping: steps that have begun come to their end…');
    case 'applied':
      return results?.failed === 0
        ? trans._n('Done: %1 step.', 'Done: %1 steps.', results.done)
        : trans.__(
            'Done: %1. Failed: %2. A new plan has what is left.',
            results?.done,
            results?.failed
          );
    case 'stopped':
      return plan
        ? trans.__(
            'Stopped. Done: %1. Failed: %2. Not begun: %3. A new plan has what is left.',
            results?.done,
            results?.failed,
            results?.left
          )
        : trans.__('Stopped. Nothing was changed.');
    case 'failed':
      return plan
        ? trans.__('It broke. A new plan has what is left.')
        : trans.__('There is no plan.');
    default:
      return '';
  }
}

function plannedText(plan: IPlan, trans: TranslationBundle): string {
  const { blocked, toDo, waits } = plan.counts;
  const changed = plan.changed
    ? [
        trans.__(
          'Something has changed since you were shown the plan, so nothing was done. This is the new one.'
        )
      ]
    : [];
  const all = toDo + waits + blocked === 0;
  const counts = all
    ? trans.__('All is as wanted: there is nothing to do.')
    : trans.__(
        'To do: %1. Waiting: %2. Blocked: %3. Nothing was changed so far.',
        toDo,
        waits,
        blocked
      );
  return [...changed, counts].join(' ');
}
