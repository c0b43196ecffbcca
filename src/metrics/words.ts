import { TranslationBundle } from '@jupyterlab/translation';

import { bytesText, numberText } from '../components/words';

/** What a metric measures; the server's own word where it is newer than this page. */
export function metricText(name: string, trans: TranslationBundle): string {
  return (
    accelerators(name, trans) ?? health(name, trans) ?? counts(name, trans)
  );
}

function accelerators(name: string, trans: TranslationBundle): string | null {
  const texts: Readonly<Record<string, string>> = {
    'gpu-utilization': trans.__('GPU utilisation'),
    'gpu-memory': trans.__('GPU memory usage'),
    'gpu-temperature': trans.__('GPU temperature'),
    'efa-received': trans.__('EFA received per node'),
    'efa-sent': trans.__('EFA sent per node'),
    'efa-dropped': trans.__('EFA packets dropped per node'),
    cpu: trans.__('CPU usage'),
    memory: trans.__('Memory usage')
  };
  return texts[name] ?? null;
}

function health(name: string, trans: TranslationBundle): string | null {
  const texts: Readonly<Record<string, string>> = {
    healthy: trans.__('Schedulable nodes'),
    'deep-health-check': trans.__('Nodes in deep health checks'),
    'to-reboot': trans.__('Nodes pending reboot'),
    'to-replace': trans.__('Nodes pending replacement')
  };
  return texts[name] ?? null;
}

function counts(name: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    nodes: trans.__('Nodes'),
    'nodes-idle': trans.__('Idle nodes'),
    'nodes-failed': trans.__('Failed nodes'),
    'gpus-idle': trans.__('Idle GPUs'),
    'jobs-running': trans.__('Running jobs'),
    'jobs-waiting': trans.__('Waiting jobs')
  };
  return texts[name] ?? name;
}

/** The service that measurements come from; its name is the same in all languages. */
export function sourceText(source: string): string {
  switch (source) {
    case 'CloudWatch':
      return 'Amazon CloudWatch';
    case 'Prometheus':
      return 'Amazon Managed Service for Prometheus';
    default:
      return source;
  }
}

/** A value with its unit, as the user's language writes numbers. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case 'percent':
      return `${numberText(value)} %`;
    case 'celsius':
      return `${numberText(value)} °C`;
    case 'packets/s':
      return `${numberText(value)} /s`;
    case 'bytes/s':
      return `${bytesText(value)}/s`;
    default:
      return numberText(value);
  }
}
