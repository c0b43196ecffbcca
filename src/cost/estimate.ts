import { TranslationBundle } from '@jupyterlab/translation';

import { hoursText, moneyText } from '../components/words';
import { sentenceText } from '../runs/words';
import type { IEstimate } from './client';
import { priceLines } from './words';

type IShare = IEstimate['shares'][number];

/** What a run would cost in a few words, and for a hint where the prices are from; null where nothing can be said. */
export function estimateWords(
  estimate: IEstimate,
  trans: TranslationBundle
): { readonly text: string; readonly hint: string } | null {
  const { currency, notes, prices } = estimate;
  // The largest share is the limit that comes first.
  const shares = [...estimate.shares].sort((a, b) => b.share - a.share);
  const texts = [
    estimateText(estimate, trans),
    ...shares.slice(0, 1).map(share => shareText(share, trans))
  ].filter(text => text !== null);
  const lines = [
    ...shares.map(share => usedText(share, trans)),
    ...priceLines(prices, currency, trans),
    ...notes
  ];
  return texts.length === 0
    ? null
    : { text: texts.join(' · '), hint: lines.map(sentenceText).join('\n') };
}

/** Whose quota a run takes a share of. */
function quotaText({ quota, unit }: IShare, trans: TranslationBundle): string {
  return trans.__('the %1 of %2', unit, quota);
}

function shareText(one: IShare, trans: TranslationBundle): string {
  const percent = Math.round(one.share * 100);
  return trans.__('%1% of %2', percent, quotaText(one, trans));
}

/** What is used of a quota without the run. */
function usedText(one: IShare, trans: TranslationBundle): string {
  return trans.__(
    '%1: %2 of %3 used',
    quotaText(one, trans),
    hoursText(one.used),
    hoursText(one.nominal)
  );
}

function estimateText(
  estimate: IEstimate,
  trans: TranslationBundle
): string | null {
  const { at_most: most, currency, gpus, per_hour: rate } = estimate;
  if (rate !== null) {
    const hourly = trans.__('about %1/h', moneyText(rate, currency, true));
    return most === null
      ? hourly
      : trans.__('%1, at most %2', hourly, moneyText(most, currency, true));
  }
  const hours = gpus ? estimate.gpu_hours : estimate.node_hours;
  if (hours === null) {
    return null;
  }
  return gpus
    ? trans.__('at most %1 GPU-hours', hoursText(hours))
    : trans.__('at most %1 node-hours', hoursText(hours));
}
