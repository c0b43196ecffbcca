import { TranslationBundle } from '@jupyterlab/translation';

import { pageLanguage } from '../components/words';
import { IPlace, ISeparation } from './types';

const GIB = 2 ** 30;

/** What keeps others out, in a word or two. */
export function levelText(level: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    none: trans.__('open'),
    mount_path_only: trans.__('mount path only'),
    posix: trans.__('POSIX'),
    real_identity: trans.__('real identity')
  };
  return texts[level] ?? level;
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
  if (place.runs_go_here) {
    parts.push(trans.__('stores runs'));
  }
  if (place.read_only) {
    parts.push(trans.__('read-only'));
  }
  if (place.aws && place.aws.state !== 'AVAILABLE') {
    parts.push(place.aws.state);
  }
  return parts.join(' · ');
}

/** What does not keep other users out of the user's runs, and what to do about it; none when all is well. */
export function separationLines(
  separation: ISeparation,
  trans: TranslationBundle
): readonly string[] {
  const { fix, holds, old_runs: oldRuns, reason } = separation;
  const lines: string[] = [];
  if (!holds) {
    const why = [reason, fix && sentence(fix)].filter(Boolean).join('. ');
    lines.push(
      trans.__('Warning: other users may be able to change your runs. %1', why)
    );
  }
  if (oldRuns > 0) {
    lines.push(
      trans._n(
        '%1 of your runs uses the old layout. Run “hpj storage migrate”.',
        '%1 of your runs use the old layout. Run “hpj storage migrate”.',
        oldRuns
      )
    );
  }
  return lines;
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
