import { TranslationBundle } from '@jupyterlab/translation';

import { momentText } from '../components/words';
import { ILifecycle } from './types';

/** What a step makes ready. */
export function stepText(name: string, trans: TranslationBundle): string {
  switch (name) {
    case 'package':
      return trans.__('HyperPod extension');
    case 'partition':
      return trans.__('Storage partition');
    case 'config':
      return trans.__('Configuration file');
    case 'client':
      return trans.__('Slurm commands');
    case 'access':
      return trans.__('Access to the EKS cluster');
    case 'doctor':
      return trans.__('Check by the doctor');
    default:
      return name;
  }
}

/** How far a step is. */
export function stepStateText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'waiting':
      return trans.__('to come');
    case 'running':
      return trans.__('at work');
    case 'done':
      return trans.__('ready');
    case 'failed':
      return trans.__('failed');
    case 'skipped':
      return trans.__('left out');
    default:
      return state;
  }
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
      momentText(value.updatedAt)
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
