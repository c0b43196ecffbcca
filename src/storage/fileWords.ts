import { TranslationBundle } from '@jupyterlab/translation';

import type { FileAction } from './fileClient';
import type { IStoredFile } from './types';

/** What a button that moves bytes of files says. */
export function actionText(
  action: FileAction,
  trans: TranslationBundle
): string {
  switch (action) {
    case 'hydrate':
      return trans.__('Restore from S3');
    case 'release':
      return trans.__('Release');
  }
}

/** Where a file's bytes are, in words. */
export function stateText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'local':
      return trans.__('on the file system only');
    case 'exists':
      return trans.__('on the file system; export to S3 started');
    case 'archived':
      return trans.__('on the file system, with a copy in S3');
    case 'dirty':
      return trans.__('changed since the export to S3');
    case 'released':
      return trans.__('in S3 only; restored when read');
    case 'lost':
      return trans.__('lost in S3');
    case 'exporting':
      return trans.__('exporting to S3');
    case 'hydrating':
      return trans.__('restoring from S3');
    case 'busy':
      return trans.__('busy with another transfer');
    default:
      return state;
  }
}

/** What is to be said of a file beside its state. */
export function fileText(file: IStoredFile, trans: TranslationBundle): string {
  const words: (string | null)[] = [file.progress, file.reason, file.hint];
  if (file.done === 'asked') {
    words.unshift(trans.__('requested'));
  }
  return words.filter(word => word !== null).join('; ');
}
