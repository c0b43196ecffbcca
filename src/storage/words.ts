import { TranslationBundle } from '@jupyterlab/translation';

import { pageLanguage } from '../components/words';
import { FileAction } from './client';
import { IPlace, IStoredFile } from './types';

const GIB = 2 ** 30;

/** What keeps others out, in a word or two. */
export function levelText(level: string, trans: TranslationBundle): string {
  switch (level) {
    case 'none':
      return trans.__('open');
    case 'mount_path_only':
      return trans.__('mount path only');
    case 'posix':
      return trans.__('POSIX');
    case 'real_identity':
      return trans.__('real identity');
    default:
      return level;
  }
}

/** What is to be known of a place at a glance: its room, its use, its access. */
export function placeText(place: IPlace, trans: TranslationBundle): string {
  const { free, total } = place;
  const parts: string[] = [];
  if (free !== null && total !== null) {
    const write = new Intl.NumberFormat(pageLanguage(), {
      maximumFractionDigits: 1
    });
    parts.push(
      trans.__(
        '%1 of %2 GiB free',
        write.format(free / GIB),
        write.format(total / GIB)
      )
    );
  }
  if (place.runsGoHere) {
    parts.push(trans.__('runs go here'));
  }
  if (place.isReadOnly) {
    parts.push(trans.__('read only'));
  }
  if (place.awsState !== null && place.awsState !== 'AVAILABLE') {
    parts.push(place.awsState);
  }
  return parts.join(' · ');
}

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
