import { TranslationBundle } from '@jupyterlab/translation';

import { COST_NOT_CONFIRMED } from './overLimit';
import { FOREIGN_CODE } from './trust';
import { IFinding } from './types';

/** A hint of the server that names a command or its options, for which the form has fields. */
const FOR_COMMANDS = /(^|\s)--?[a-z]|\bhpj\b/;

/**
 * What to do about something that was found; null where a button or a field's name says it.
 */
export function hintOf(
  { code, hint }: Pick<IFinding, 'code' | 'hint'>,
  hasFixes: boolean,
  trans: TranslationBundle
): string | null {
  const own = ownHint(code, trans);
  if (own !== null || hint === null) {
    return own;
  }
  return hasFixes || FOR_COMMANDS.test(hint) ? null : hint;
}

function ownHint(code: string, trans: TranslationBundle): string | null {
  switch (code) {
    case FOREIGN_CODE:
      return trans.__(
        'Review it under “Code” on the run page, then confirm that it may run.'
      );
    case COST_NOT_CONFIRMED:
      return trans.__(
        'Use fewer nodes or a shorter time limit, or confirm it when you submit.'
      );
    case 'secret_missing':
      return trans.__(
        'Enter its value, or write NAME=REFERENCE for a secret that the cluster resolves.'
      );
    case 'no_python':
      return trans.__(
        'Enter the path of an interpreter on the nodes, or leave it empty for the cluster default.'
      );
    case 'not_enough_gpus':
      return trans.__('Request fewer, or choose another cluster.');
    case 'torch_missing':
      return trans.__(
        'Install torch there, or choose another Python or launcher.'
      );
    case 'default_queue_has_all':
      return trans.__('Choose a queue from the list.');
    case 'time_limit':
      return trans.__('Set a shorter time limit, or choose another queue.');
    case 'unsupported':
      return trans.__('Clear the field, or choose another cluster.');
    default:
      return null;
  }
}
