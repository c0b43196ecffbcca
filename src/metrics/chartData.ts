import { TranslationBundle } from '@jupyterlab/translation';

import { IChart, ICurve } from '../charts/data';
import { byteUnit } from '../components/words';
import { IMetrics } from './client';
import { metricText, valueText } from './words';

/**
 * The chart of a metric.
 */
export interface IMetricChart extends IChart {
  readonly curves: readonly [ICurve];
  readonly limit: number | null;
  /** Names and values: the latest first, then mean, minimum and maximum. */
  readonly figures: readonly (readonly [string, string])[];
}

/** What is full at 100 %. Other limits, such as a GPU's temperature, depend on the hardware, and no source tells them. */
const FILLS: readonly string[] = ['gpu-memory', 'memory'];

/**
 * A chart for each metric, over the whole time that was asked for.
 */
export function metricCharts(
  found: IMetrics,
  trans: TranslationBundle
): readonly IMetricChart[] {
  const begin = Date.parse(found.begin) / 1000;
  const span = Date.parse(found.end) / 1000 - begin;
  const length = Math.max(0, Math.ceil(span / found.period_s));
  const times = Array.from({ length }, (_, at) => begin + at * found.period_s);
  return found.metrics.map(metric => {
    const { highest, last, lowest, mean, name, unit } = metric;
    const size = unit === 'bytes/s' ? byteUnit(highest).size : 1;
    const text = (value: number) => valueText(value * size, unit);
    const title = metricText(name, trans);
    const values = times.map((): number | null => null);
    for (const { time, value } of metric.points) {
      const at = Math.floor((Date.parse(time) / 1000 - begin) / found.period_s);
      values[at] = value / size;
    }
    return {
      ...{ name, title, times, text },
      unit: '',
      top: unit === 'percent' ? 100 : null,
      limit: FILLS.includes(name) ? 100 : null,
      isWhole: unit === 'count',
      hasGaps: true,
      curves: [{ label: title, values }],
      figures: [
        [trans.__('Latest'), valueText(last, unit)],
        [trans.__('Mean'), valueText(mean, unit)],
        [trans.__('Min.'), valueText(lowest, unit)],
        [trans.__('Max.'), valueText(highest, unit)]
      ]
    };
  });
}
