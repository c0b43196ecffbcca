import { TranslationBundle } from '@jupyterlab/translation';

import { clusterStateText } from '../clusters/states';

/** The state of a HyperPod cluster, an instance group or an instance in words. */
export function hyperpodStateText(
  state: string,
  trans: TranslationBundle
): string {
  switch (state) {
    case 'in-service':
      return trans.__('in service');
    case 'creating':
      return trans.__('creating');
    case 'deleting':
      return trans.__('deleting');
    case 'updating':
      return trans.__('updating');
    case 'updating-software':
      return trans.__('updating software');
    case 'rolling-back':
      return trans.__('rolling back');
    case 'degraded':
      return trans.__('degraded');
    case 'ending':
      return trans.__('ending');
    case 'deep-health-check':
      return trans.__('deep health check');
    case 'not-found':
      return trans.__('not found');
    case 'not-listed':
      return trans.__('not listed by AWS');
    default:
      return clusterStateText(state, trans);
  }
}

/** Whether updates of the software are due. */
export function imageStatusText(
  status: string,
  trans: TranslationBundle
): string {
  switch (status) {
    case 'UpToDate':
      return trans.__('up to date');
    case 'UpdateAvailable':
      return trans.__('update available');
    case 'SecurityUpdateRequired':
      return trans.__('security update required');
    case 'EndOfLife':
      return trans.__('end of life');
    default:
      return status;
  }
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
      return orchestrator ?? trans.__('scheduler unknown');
  }
}
