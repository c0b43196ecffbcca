import { TranslationBundle } from '@jupyterlab/translation';

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
      return orchestrator ?? trans.__('unknown orchestrator');
  }
}
