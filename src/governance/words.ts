import { TranslationBundle } from '@jupyterlab/translation';

import { clusterStateText } from '../clusters/states';
import { IAllocation } from './types';

/** The state of a quota or a policy in words. */
export function governanceStateText(
  state: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    active: trans.__('active'),
    disabled: trans.__('disabled'),
    deleted: trans.__('deleted')
  };
  return texts[state] ?? clusterStateText(state, trans);
}

/** Whether a team lends and borrows idle compute. */
export function sharingText(
  sharing: string | null,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    Lend: trans.__('lends'),
    DontLend: trans.__('does not lend'),
    LendAndBorrow: trans.__('lends and borrows')
  };
  return sharing === null ? '' : (texts[sharing] ?? sharing);
}

/** Which work of a team its own more important work ends. */
export function preemptionText(
  preemption: string | null,
  trans: TranslationBundle
): string {
  switch (preemption) {
    case 'LowerPriority':
      return trans.__('lower-priority jobs of the team');
    case 'Never':
      return trans.__('never');
    default:
      return preemption ?? '';
  }
}

/** How idle compute is shared among the teams. */
export function fairShareText(
  fairShare: string | null,
  trans: TranslationBundle
): string {
  switch (fairShare) {
    case 'Enabled':
      return trans.__('Idle compute is shared by team weight.');
    case 'Disabled':
      return trans.__('Idle compute is first come, first served.');
    default:
      return fairShare ?? '';
  }
}

/** Whether what is no team's own can be borrowed. */
export function idleSharingText(
  idleSharing: string | null,
  trans: TranslationBundle
): string {
  switch (idleSharing) {
    case 'Enabled':
      return trans.__('Unallocated compute can be borrowed.');
    case 'Disabled':
      return trans.__('Unallocated compute cannot be borrowed.');
    default:
      return idleSharing ?? '';
  }
}

/** Such as "4 × ml.g5.8xlarge". */
export function allocationText(
  one: IAllocation,
  trans: TranslationBundle
): string {
  const {
    accelerators,
    count,
    cpus,
    instance_type: instanceType,
    memory_gib: memoryGib
  } = one;
  const parts: string[] = [];
  if (accelerators !== null) {
    parts.push(trans._n('%1 accelerator', '%1 accelerators', accelerators));
  }
  if (one.partition !== null && one.partitions !== null) {
    parts.push(`${one.partitions} × ${one.partition}`);
  }
  if (cpus !== null) {
    parts.push(trans.__('%1 vCPUs', cpus));
  }
  if (memoryGib !== null) {
    parts.push(trans.__('%1 GiB', memoryGib));
  }
  const head = count === null ? instanceType : `${count} × ${instanceType}`;
  return parts.length === 0 ? head : `${head}: ${parts.join(', ')}`;
}
