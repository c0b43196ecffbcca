import { TranslationBundle } from '@jupyterlab/translation';

import { FOREIGN_CODE } from './trust';

/**
 * What to do about something that was found, in the words of this form; null where the server's own fit.
 *
 * The server's hints name the command line's options, for which the form has fields.
 */
export function hintOf(code: string, trans: TranslationBundle): string | null {
  switch (code) {
    case FOREIGN_CODE:
      return trans.__(
        'Read it under “Code” on the run’s page, then confirm that it may run.'
      );
    case 'secret_missing':
      return trans.__(
        'Type its value, or write NAME=REFERENCE for one that the cluster resolves.'
      );
    case 'no_python':
      return trans.__(
        'Name the path of an interpreter on the nodes, or leave it to the cluster.'
      );
    case 'not_enough_gpus':
      return trans.__('Ask for fewer, or choose another cluster.');
    case 'torch_missing':
      return trans.__(
        'Install torch there, name another Python, or choose another launcher.'
      );
    case 'default_queue_has_all':
      return trans.__('Choose a queue: the field offers them.');
    case 'no_time_limit':
      return trans.__('Say how long it may take, such as 2h.');
    case 'time_limit':
      return trans.__('Give it a shorter limit, or choose another queue.');
    case 'unsupported':
      return trans.__('Leave it out, or choose another cluster.');
    default:
      return null;
  }
}
