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
      return trans.__('Bring Back from S3');
    case 'release':
      return trans.__('Release');
    case 'export':
      return trans.__('Export to S3');
  }
}

/** Where a file's bytes are, in words. */
export function stateText(state: string, trans: TranslationBundle): string {
  switch (state) {
    case 'local':
      return trans.__('on the file system only');
    case 'exists':
      return trans.__('on the file system; a copy was begun in S3');
    case 'archived':
      return trans.__('on the file system, with a copy in S3');
    case 'dirty':
      return trans.__('changed since it was copied to S3');
    case 'released':
      return trans.__('in S3 only; it comes back when it is read');
    case 'lost':
      return trans.__('its copy in S3 is lost');
    case 'exporting':
      return trans.__('on its way to S3');
    case 'hydrating':
      return trans.__('on its way back from S3');
    case 'busy':
      return trans.__('something else is under way');
    default:
      return state;
  }
}

/** What is to be said of a file beside its state. */
export function fileText(file: IStoredFile, trans: TranslationBundle): string {
  const words: (string | null)[] = [file.progress, file.reason, file.hint];
  if (file.done === 'asked') {
    words.unshift(
      file.task === null
        ? trans.__('asked for')
        : trans.__('AWS does it by %1', file.task)
    );
  }
  return words.filter(word => word !== null).join('; ');
}
