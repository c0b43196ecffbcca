import { TranslationBundle } from '@jupyterlab/translation';

import { pageLanguage } from '../components/words';

/** What a metric measures; the server's own word where it is newer than this page. */
export function metricText(name: string, trans: TranslationBundle): string {
  return (
    accelerators(name, trans) ?? health(name, trans) ?? counts(name, trans)
  );
}

function accelerators(name: string, trans: TranslationBundle): string | null {
  switch (name) {
    case 'gpu-utilization':
      return trans.__('GPU utilisation');
    case 'gpu-memory':
      return trans.__('GPU memory in use');
    case 'gpu-temperature':
      return trans.__('GPU temperature');
    case 'efa-received':
      return trans.__('Received by EFA, a node');
    case 'efa-sent':
      return trans.__('Sent by EFA, a node');
    case 'efa-dropped':
      return trans.__('Packets dropped by EFA, a node');
    case 'cpu':
      return trans.__('CPU in use');
    case 'memory':
      return trans.__('Memory in use');
    default:
      return null;
  }
}

function health(name: string, trans: TranslationBundle): string | null {
  switch (name) {
    case 'healthy':
      return trans.__('Nodes that take jobs');
    case 'deep-health-check':
      return trans.__('Nodes in deep health checks');
    case 'to-reboot':
      return trans.__('Nodes to be rebooted');
    case 'to-replace':
      return trans.__('Nodes to be replaced');
    default:
      return null;
  }
}

function counts(name: string, trans: TranslationBundle): string {
  switch (name) {
    case 'nodes':
      return trans.__('Nodes');
    case 'nodes-idle':
      return trans.__('Nodes without a job');
    case 'nodes-failed':
      return trans.__('Failed nodes');
    case 'gpus-idle':
      return trans.__('GPUs without a job');
    case 'jobs-running':
      return trans.__('Running jobs');
    case 'jobs-waiting':
      return trans.__('Waiting jobs');
    default:
      return name;
  }
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

const STEPS = ['B/s', 'KiB/s', 'MiB/s', 'GiB/s', 'TiB/s'];

/** A value with its unit, as the user's language writes numbers. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case 'percent':
      return `${numberText(value)} %`;
    case 'celsius':
      return `${numberText(value)} °C`;
    case 'packets/s':
      return `${numberText(value)} /s`;
    case 'bytes/s': {
      let step = 0;
      while (value >= 1024 && step < STEPS.length - 1) {
        value /= 1024;
        step += 1;
      }
      return `${numberText(value)} ${STEPS[step]}`;
    }
    default:
      return numberText(value);
  }
}

function numberText(value: number): string {
  return new Intl.NumberFormat(pageLanguage(), {
    maximumSignificantDigits: 3
  }).format(value);
}
