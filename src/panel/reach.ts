import { TranslationBundle } from '@jupyterlab/translation';

import { reachText } from '../clusters/reach';
import { ICluster } from '../clusters/types';

/** Words for what no entry of the configuration helps. */
const BLOCKED = [
  'configured',
  'not-in-service',
  'unknown-orchestrator',
  'not-there'
];

/** Words that say nothing about the way from here. */
const PLAIN = ['ready', 'not-looked', 'not-described', 'not-known'];

/** The word for a cluster that AWS calls in service, and that can't be used yet: its sentence says why. */
const NOT_YET = 'not-in-service';

/** Whether a cluster of AWS can be written into the configuration with any use. */
export function canConnect({ configured, hyperpod, state }: ICluster): boolean {
  return (
    !configured &&
    state === 'in-service' &&
    !BLOCKED.includes(hyperpod?.reach?.word ?? '')
  );
}

/** What keeps one from submitting to a cluster of AWS. */
export function reachLine(
  { hyperpod }: ICluster,
  trans: TranslationBundle
): string {
  const { sentence, word } = hyperpod?.reach ?? {
    sentence: '',
    word: 'not-looked'
  };
  if (word === NOT_YET) {
    return sentence;
  }
  return PLAIN.includes(word)
    ? trans.__('not connected')
    : reachText(word, trans);
}
