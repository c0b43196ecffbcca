import { TranslationBundle } from '@jupyterlab/translation';

/** A kind of log in words; null: that of deep health checks. */
export function kindText(
  kind: string | null,
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'lifecycle':
      return trans.__('lifecycle');
    case 'health':
      return trans.__('health');
    case 'deep-health-check':
    case null:
      return trans.__('deep health check');
    default:
      return kind;
  }
}
