import { TranslationBundle } from '@jupyterlab/translation';

import { momentText } from '../components/words';
import { ILifecycle } from './types';

/** What a step makes ready. */
export function stepText(name: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    package: trans.__('HyperPod extension'),
    partition: trans.__('Storage partition'),
    config: trans.__('Configuration file'),
    client: trans.__('Slurm commands'),
    access: trans.__('Access to the EKS cluster'),
    doctor: trans.__('Check by the doctor')
  };
  return texts[name] ?? name;
}

/** How far a step is. */
export function stepStateText(state: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    waiting: trans.__('to come'),
    running: trans.__('at work'),
    done: trans.__('ready'),
    failed: trans.__('failed'),
    skipped: trans.__('left out')
  };
  return texts[state] ?? state;
}

/** How many steps are over. */
export function overOf({ steps }: ILifecycle): number {
  return steps.filter(({ state }) => !['waiting', 'running'].includes(state))
    .length;
}

/** How far all of it is, in a sentence. */
export function headline(value: ILifecycle, trans: TranslationBundle): string {
  if (value.problem !== null) {
    return trans.__('It is not known whether this space is ready.');
  }
  if (value.state === 'stopped') {
    return trans.__(
      'Making this space ready has stopped: nothing since %1.',
      momentText(value.updated_at)
    );
  }
  if (value.state === 'failed') {
    return trans.__('This space is not wholly ready for the cluster.');
  }
  const step = value.steps.find(({ state }) => state === 'running');
  return step === undefined
    ? trans.__('This space is being made ready for the cluster.')
    : trans.__(
        'This space is being made ready: %1',
        stepText(step.name, trans)
      );
}
