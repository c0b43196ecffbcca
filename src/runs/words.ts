import { TranslationBundle } from '@jupyterlab/translation';

import { nodesText } from '../components/words';
import type { IRun } from './types';

/** Seconds as a clock shows them: 4:12, 1:04:12. */
export function clockText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number) => String(value).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}:${two(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

/** How long something is, in its largest unit: 40 s, 12 min, 3 h. */
export function spanText(seconds: number, trans: TranslationBundle): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) {
    return trans.__('%1 s', whole);
  }
  if (whole < 3600) {
    return trans.__('%1 min', Math.round(whole / 60));
  }
  const minutes = Math.floor((whole % 3600) / 60);
  const hours = trans.__('%1 h', Math.floor(whole / 3600));
  return minutes === 0 ? hours : trans.__('%1 %2 min', hours, minutes);
}

/** Seconds from one moment to another, or to now. */
export function secondsBetween(begin: string, end: string | null): number {
  const until = end === null ? Date.now() : Date.parse(end);
  return Math.max(0, (until - Date.parse(begin)) / 1000);
}

/** A reason of the server as a sentence. */
export function sentenceText(text: string): string {
  const first = text.startsWith('it is ') ? text.slice(6) : text;
  // The name of a user, a host or a file stays as it is.
  return /^[a-z]+(?=[\s,.;:]|$)/.test(first)
    ? first.charAt(0).toUpperCase() + first.slice(1)
    : first;
}

/** How many nodes a run has, and how many GPUs or else ranks in all. */
export function sizeText(run: IRun, trans: TranslationBundle): string {
  const { gpus_per_node: gpus, nodes, processes_per_node: ranks } = run;
  if (gpus) {
    return nodesText(nodes, nodes * gpus, trans);
  }
  const text = nodesText(nodes, 0, trans);
  const count = nodes * ranks;
  return ranks > 1 ? trans.__('%1, %2 ranks', text, count) : text;
}

/** The same in full, for a hint. */
export function fullSizeText(run: IRun, trans: TranslationBundle): string {
  const { gpus_per_node: gpus, nodes, processes_per_node: ranks } = run;
  return [
    trans._n('%1 node', '%1 nodes', nodes),
    ...(gpus ? [trans._n('%1 GPU each', '%1 GPUs each', gpus)] : []),
    trans._n('%1 rank each', '%1 ranks each', ranks)
  ].join(', ');
}
