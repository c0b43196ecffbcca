import { PathExt } from '@jupyterlab/coreutils';
import { TranslationBundle } from '@jupyterlab/translation';

import { COLOURS, IChart, ICurve } from '../charts/data';
import { hoursText, moneyText, pageLanguage } from '../components/words';
import { IUsageReport } from './client';

/** What can be shown of usage. */
export const MEASURES = ['node_hours', 'gpu_hours', 'amount'] as const;

export type Measure = (typeof MEASURES)[number];

const DAY_MS = 86_400_000;

/** What a report has anything of. */
export function measuresOf({ rows }: IUsageReport): readonly Measure[] {
  return MEASURES.filter(
    measure =>
      measure === 'node_hours' ||
      rows.some(row =>
        measure === 'amount' ? row.amount !== null : row.gpu_hours > 0
      )
  );
}

/** What is shown before the user chooses: GPU-hours, where there are any. */
export function firstMeasure(measures: readonly Measure[]): Measure {
  return measures.includes('gpu_hours') ? 'gpu_hours' : 'node_hours';
}

/** A value with its unit in words. */
export function measureText(
  value: number | null,
  measure: Measure,
  currency: string
): string {
  if (value === null) {
    return '–';
  }
  return measure === 'amount' ? moneyText(value, currency) : hoursText(value);
}

export function measureLabel(
  measure: Measure,
  trans: TranslationBundle
): string {
  const labels: Readonly<Record<Measure, string>> = {
    gpu_hours: trans.__('GPU-hours'),
    node_hours: trans.__('Node-hours'),
    amount: trans.__('Cost')
  };
  return labels[measure];
}

/** Keys as they are shown: of notebooks with names of their own the names, not the paths. */
export function keyTexts({
  by,
  rows
}: IUsageReport): ReadonlyMap<string, string> {
  const nameOf = (key: string) =>
    by === 'notebook' ? PathExt.basename(key) : key;
  const names = rows.map(row => nameOf(row.key));
  return new Map(
    rows.map(({ key }, at) => [
      key,
      names.filter(name => name === names[at]).length === 1 ? names[at] : key
    ])
  );
}

/**
 * A key's part of the stacked bars.
 */
export interface IUsageCurve extends ICurve {
  readonly colour: string;
  readonly values: readonly number[];
  readonly total: number;
}

export interface IUsageChart extends IChart<IUsageCurve> {
  /** The colours of keys that have one of their own. */
  readonly colours: ReadonlyMap<string, string>;
  /** The keys as they are shown. */
  readonly texts: ReadonlyMap<string, string>;
}

/** The rows of a report, the largest first. */
export function sortedRows(
  { rows }: IUsageReport,
  measure: Measure
): IUsageReport['rows'] {
  return [...rows].sort(
    (one, other) => (other[measure] ?? 0) - (one[measure] ?? 0)
  );
}

/**
 * Stacked bars of each day of a report's period: of the largest keys, the rest together. The largest comes last, at the bottom.
 */
export function usageChart(
  report: IUsageReport,
  measure: Measure,
  trans: TranslationBundle
): IUsageChart {
  const keys = sortedRows(report, measure)
    .filter(row => (row[measure] ?? 0) > 0)
    .map(row => row.key);
  const most = keys.length > COLOURS ? COLOURS - 1 : COLOURS;
  const colours = new Map(
    keys.slice(0, most).map((key, at) => [key, colourOf(at)])
  );
  const first = dayOf(report.begin);
  const times: number[] = [];
  for (let day = first; day * DAY_MS < Date.parse(report.end); day++) {
    times.push(day);
  }
  const drawn = [...colours.keys()];
  const hasOthers = keys.length > most;
  const values = [...drawn, ...(hasOthers ? [''] : [])].map(() =>
    times.map(() => 0)
  );
  for (const one of report.days) {
    const value = one[measure] ?? 0;
    const at = drawn.indexOf(one.key);
    const series = values[at < 0 ? drawn.length : at];
    const day = dayOf(one.day) - first;
    if (value > 0 && series !== undefined && day in series) {
      series[day] += value;
    }
  }
  const texts = keyTexts(report);
  const curves = values.map((found, at) => ({
    label: texts.get(drawn[at]) ?? trans.__('%1 others', keys.length - most),
    colour: colourOf(at),
    values: found,
    total: found.reduce((sum, value) => sum + value, 0)
  }));
  return {
    name: 'usage',
    texts,
    title: trans.__('%1 per day (UTC)', measureLabel(measure, trans)),
    unit: measure === 'amount' ? report.currency : '',
    times,
    xText: dayText,
    isStacked: true,
    top: null,
    curves: curves.reverse(),
    colours,
    text: value =>
      measure === 'amount'
        ? moneyText(value, report.currency, true)
        : hoursText(value)
  };
}

function colourOf(at: number): string {
  return `var(--jp-hyperpod-series-${Math.min(at, COLOURS - 1)})`;
}

/** A day's number since 1970, in UTC. */
function dayOf(iso: string): number {
  return Math.floor(Date.parse(iso) / DAY_MS);
}

function dayText(day: number): string {
  return new Intl.DateTimeFormat(pageLanguage(), {
    month: 'short',
    day: 'numeric',
    timeZone: 'UTC'
  }).format(new Date(day * DAY_MS));
}
