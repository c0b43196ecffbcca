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
    doctor: trans.__('Doctor checks')
  };
  return texts[name] ?? name;
}

/** How far a step is. */
export function stepStateText(state: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    waiting: trans.__('waiting'),
    running: trans.__('running'),
    done: trans.__('done'),
    failed: trans.__('failed'),
    skipped: trans.__('skipped')
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
    return trans.__('The setup state of this space is unknown.');
  }
  if (value.state === 'stopped') {
    return trans.__(
      'The setup of this space has stopped. Last update: %1.',
      momentText(value.updated_at)
    );
  }
  if (value.state === 'failed') {
    return trans.__('The setup of this space for the cluster is incomplete.');
  }
  const step = value.steps.find(({ state }) => state === 'running');
  return step === undefined
    ? trans.__('Setting up this space for the cluster…')
    : trans.__('Setting up this space: %1', stepText(step.name, trans));
}
