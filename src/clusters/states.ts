import { TranslationBundle } from '@jupyterlab/translation';

import { stateText } from '../components/words';

/** The state of a cluster, an instance group, a node, a queue or a job in words, whether the scheduler or AWS says it. */
export function clusterStateText(
  state: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    reserved: trans.__('reserved'),
    draining: trans.__('draining'),
    drained: trans.__('drained'),
    maintenance: trans.__('maintenance'),
    failing: trans.__('failing'),
    rebooting: trans.__('rebooting'),
    starting: trans.__('starting'),
    'powering-off': trans.__('powering off'),
    'powered-off': trans.__('powered off'),
    'not-answering': trans.__('not responding'),
    misconfigured: trans.__('misconfigured'),
    inactive: trans.__('inactive'),
    held: trans.__('held'),
    suspended: trans.__('suspended'),
    'in-service': trans.__('in service'),
    creating: trans.__('creating'),
    deleting: trans.__('deleting'),
    updating: trans.__('updating'),
    'updating-software': trans.__('updating software'),
    'rolling-back': trans.__('rolling back'),
    degraded: trans.__('degraded'),
    ending: trans.__('terminating'),
    'deep-health-check': trans.__('deep health check'),
    'not-found': trans.__('not found')
  };
  return texts[state] ?? stateText(state, trans);
}
