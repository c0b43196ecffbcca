import { TranslationBundle } from '@jupyterlab/translation';

import { ICheck, IExamination, IStage } from './types';

/** The levels, the worst first. */
export const LEVELS = ['fail', 'unknown', 'warn', 'ok'] as const;

/** How a check is, in words. */
export function levelText(level: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    ok: trans.__('ok'),
    warn: trans.__('warning'),
    fail: trans.__('failed'),
    unknown: trans.__('could not be checked')
  };
  return texts[level] ?? level;
}

/** How many checks are of a level. */
export function countText(
  level: string,
  count: number,
  trans: TranslationBundle
): string {
  return level === 'warn'
    ? trans._n('%1 warning', '%1 warnings', count)
    : `${count} ${levelText(level, trans)}`;
}

/** A stage of a run's path. */
export function stageText(
  stage: IStage['stage'],
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<IStage['stage'], string>> = {
    jupyterlab: trans.__('JupyterLab'),
    aws: trans.__('AWS role'),
    network: trans.__('Network'),
    'file-system': trans.__('File system'),
    scheduler: trans.__('Scheduler'),
    nodes: trans.__('Nodes')
  };
  return texts[stage];
}

/** How a stage is, in few words. */
export function stageDetail(
  { broken, checks, problems, stage }: IStage,
  isBusy: boolean,
  trans: TranslationBundle
): string {
  if (isBusy) {
    return trans.__('Checking…');
  }
  if (checks === 0) {
    return stage === 'nodes' ? trans.__('Not tested') : trans.__('No checks');
  }
  if (broken) {
    return trans.__('Breaks here');
  }
  return problems > 0
    ? trans._n('%1 problem', '%1 problems', problems)
    : trans._n('%1 check', '%1 checks', checks);
}

/** Where on the way a check stands. */
export function groupText(group: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    installation: trans.__('This installation'),
    metadata: trans.__('Studio’s metadata'),
    role: trans.__('AWS role'),
    domain: trans.__('Domain and HyperPod clusters'),
    'security-groups': trans.__('Security groups'),
    interfaces: trans.__('Network interfaces'),
    mount: trans.__('Mounted file systems'),
    partition: trans.__('Storage partition permissions'),
    scheduler: trans.__('Controller or API server'),
    identity: trans.__('Identity on the cluster'),
    queue: trans.__('Queues'),
    nodes: trans.__('Nodes'),
    job: trans.__('Test job'),
    facts: trans.__('Assumptions about AWS')
  };
  return texts[group] ?? group;
}

/** Who can do what is to be done. */
export function whoText(who: string | null, trans: TranslationBundle): string {
  return who === 'admin'
    ? trans.__('Ask your administrator:')
    : trans.__('Fix:');
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
    .map(({ count, level }) => countText(level, count, trans));
  const all = trans._n('%1 check', '%1 checks', checks.length);
  return bad.length === 0
    ? trans.__('%1, no problems', all)
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
      ? trans.__('Checking…')
      : `${bad.name}: ${levelText(bad.level, trans)}`;
  }
  return `${endText(state, trans)} ${summaryText(checks, trans)}`;
}

/** How an examination ended. */
export function endText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'cancelled':
      return trans.__('Checks stopped.');
    case 'failed':
      return trans.__('The checks failed to run.');
    default:
      return trans.__('Checks finished.');
  }
}
