import { TranslationBundle } from '@jupyterlab/translation';

import { ICheck, IExamination } from './types';

/** The levels, the worst first. */
export const LEVELS = ['fail', 'unknown', 'warn', 'ok'] as const;

/** How a check is, in words. */
export function levelText(level: string, trans: TranslationBundle): string {
  switch (level) {
    case 'ok':
      return trans.__('ok');
    case 'warn':
      return trans.__('warning');
    case 'fail':
      return trans.__('failed');
    case 'unknown':
      return trans.__('could not be checked');
    default:
      return level;
  }
}

/** Where on the way a check stands. */
export function groupText(group: string, trans: TranslationBundle): string {
  switch (group) {
    case 'installation':
      return trans.__('This installation');
    case 'metadata':
      return trans.__('Studio’s metadata');
    case 'role':
      return trans.__('The role at AWS');
    case 'domain':
      return trans.__('The domain and the HyperPod clusters');
    case 'security-groups':
      return trans.__('Security groups');
    case 'interfaces':
      return trans.__('Network interfaces');
    case 'mount':
      return trans.__('Mounted file systems');
    case 'partition':
      return trans.__('Rights on the storage partition');
    case 'scheduler':
      return trans.__('The controller or API server');
    case 'identity':
      return trans.__('Identity on the cluster');
    case 'queue':
      return trans.__('Queues');
    case 'job':
      return trans.__('A tiny job');
    default:
      return group;
  }
}

/** Who can do what is to be done. */
export function whoText(who: string | null, trans: TranslationBundle): string {
  return who === 'admin'
    ? trans.__('For your admin:')
    : trans.__('What you can do:');
}

/** How many checks are of a level. */
export function countOf(checks: readonly ICheck[], level: string): number {
  return checks.filter(check => check.level === level).length;
}

/** How many checks are how, in one sentence. */
export function summaryText(
  checks: readonly ICheck[],
  trans: TranslationBundle
): string {
  const bad = LEVELS.filter(level => level !== 'ok')
    .map(level => ({ level, count: countOf(checks, level) }))
    .filter(({ count }) => count > 0)
    .map(({ count, level }) => `${count} ${levelText(level, trans)}`);
  const all = trans._n('%1 check', '%1 checks', checks.length);
  return bad.length === 0
    ? trans.__('%1: all is well', all)
    : trans.__('%1: %2', all, bad.join(', '));
}

/** What a screen reader hears: what is not well as it is found, and how it ended; not every step. */
export function spokenText(
  found: IExamination | null,
  trans: TranslationBundle
): string {
  if (found === null || found.state === 'none') {
    return '';
  }
  const { checks, state } = found;
  if (state === 'running') {
    const bad = checks.filter(check => check.level !== 'ok').pop();
    return bad === undefined
      ? trans.__('The examination goes on.')
      : `${bad.name}: ${levelText(bad.level, trans)}`;
  }
  return `${endText(state, trans)} ${summaryText(checks, trans)}`;
}

/** How an examination ended. */
export function endText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'cancelled':
      return trans.__('The examination was stopped.');
    case 'failed':
      return trans.__('The examination broke.');
    default:
      return trans.__('The examination is over.');
  }
}
