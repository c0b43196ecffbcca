import { TranslationBundle } from '@jupyterlab/translation';

import { clusterStateText } from '../clusters/states';

/** The state of a HyperPod cluster, an instance group or an instance in words. */
export function hyperpodStateText(
  state: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    'in-service': trans.__('in service'),
    creating: trans.__('creating'),
    deleting: trans.__('deleting'),
    updating: trans.__('updating'),
    'updating-software': trans.__('updating software'),
    'rolling-back': trans.__('rolling back'),
    degraded: trans.__('degraded'),
    ending: trans.__('terminating'),
    'deep-health-check': trans.__('deep health check'),
    'not-found': trans.__('not found'),
    'not-listed': trans.__('not listed by AWS')
  };
  return texts[state] ?? clusterStateText(state, trans);
}

/** Whether updates of the software are due. */
export function imageStatusText(
  status: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    UpToDate: trans.__('up to date'),
    UpdateAvailable: trans.__('update available'),
    SecurityUpdateRequired: trans.__('security update required'),
    EndOfLife: trans.__('end of life')
  };
  return texts[status] ?? status;
}

/** How an instance group gets its instances. */
export function capacityText(
  capacity: string,
  trans: TranslationBundle
): string {
  switch (capacity) {
    case 'OnDemand':
      return trans.__('on demand');
    case 'Spot':
      return trans.__('spot');
    default:
      return capacity;
  }
}

/** What schedules on a cluster. */
export function orchestratorText(
  orchestrator: string | null,
  trans: TranslationBundle
): string {
  switch (orchestrator) {
    case 'slurm':
      return 'Slurm';
    case 'kubernetes':
      return 'Kubernetes (EKS)';
    default:
      return orchestrator ?? trans.__('unknown scheduler');
  }
}
