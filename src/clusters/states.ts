import { TranslationBundle } from '@jupyterlab/translation';

import { stateText } from '../components/words';

/** The state of a node, a queue or a job in words. */
export function clusterStateText(
  state: string,
  trans: TranslationBundle
): string {
  switch (state) {
    case 'reserved':
      return trans.__('reserved');
    case 'draining':
      return trans.__('draining');
    case 'drained':
      return trans.__('drained');
    case 'maintenance':
      return trans.__('maintenance');
    case 'failing':
      return trans.__('failing');
    case 'rebooting':
      return trans.__('rebooting');
    case 'starting':
      return trans.__('starting');
    case 'powering-off':
      return trans.__('powering off');
    case 'powered-off':
      return trans.__('powered off');
    case 'not-answering':
      return trans.__('not answering');
    case 'misconfigured':
      return trans.__('misconfigured');
    case 'inactive':
      return trans.__('inactive');
    case 'held':
      return trans.__('held');
    case 'suspended':
      return trans.__('suspended');
    default:
      return stateText(state, trans);
  }
}
