import { TranslationBundle } from '@jupyterlab/translation';

import { stateText } from '../components/words';

/** The state of a node, a queue or a job in words. */
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
    suspended: trans.__('suspended')
  };
  return texts[state] ?? stateText(state, trans);
}
