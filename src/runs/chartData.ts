import { TranslationBundle } from '@jupyterlab/translation';

import { IChart, ICurve } from '../charts/data';
import { bytesText, byteUnit, numberText } from '../components/words';
import { IResourceSeries, IRunResources } from './client';

/**
 * What a rank or a node used.
 */
export interface IRunCurve extends ICurve {
  /** The newest and the largest value in words. */
  readonly last: string;
  readonly peak: string;
  /** Indices of the values that were not finite. */
  readonly broken?: ReadonlySet<number>;
}

export type IRunChart = IChart<IRunCurve> & {
  /** The head of the column with the largest values; default: Peak. */
  readonly peakTitle?: string;
};

/** Whose curves are shown. */
export type ChartScope = 'ranks' | 'nodes';

type SeriesKind = IResourceSeries['kind'];

/**
 * The charts of what a run used: of its ranks and GPUs, or of its nodes as a whole. Charts without curves are left out.
 *
 * @param nodes - the nodes' names, by their ranks
 */
export function resourceCharts(
  found: IRunResources,
  scope: ChartScope,
  nodes: readonly string[],
  trans: TranslationBundle
): readonly IRunChart[] {
  const titles: readonly (readonly [SeriesKind, string])[] = [
    ['gpu', trans.__('GPU utilisation')],
    ['gpu_memory', trans.__('GPU memory')],
    ['cpu', scope === 'ranks' ? trans.__('CPU') : trans.__('CPU of the node')],
    [
      'memory',
      scope === 'ranks' ? trans.__('Memory') : trans.__('Memory of the node')
    ]
  ];
  return titles
    .map(([kind, title]) => {
      const series = found.series.filter(
        one => one.kind === kind && fits(one, scope)
      );
      return chartOf(kind, title, series, found, nodes, trans);
    })
    .filter(chart => chart.curves.length > 0);
}

/** GPUs are shown in both, since it is unknown which rank uses which. */
function fits(series: IResourceSeries, scope: ChartScope): boolean {
  return series.gpu !== null || (series.rank !== null) === (scope === 'ranks');
}

function chartOf(
  kind: SeriesKind,
  title: string,
  series: readonly IResourceSeries[],
  found: IRunResources,
  nodes: readonly string[],
  trans: TranslationBundle
): IRunChart {
  const isBytes = kind === 'memory' || kind === 'gpu_memory';
  const largest = Math.max(0, ...series.map(one => one.peak ?? 0));
  const scale = isBytes ? byteUnit(largest) : { name: '', size: 1 };
  const units: Readonly<Record<SeriesKind, string>> = {
    gpu: '%',
    gpu_memory: scale.name,
    cpu: trans.__('CPUs busy'),
    memory: scale.name
  };
  const text = (value: number) =>
    isBytes
      ? bytesText(value * scale.size)
      : kind === 'gpu'
        ? `${numberText(value)} %`
        : numberText(value);
  const said = (value: number | null) =>
    value === null ? '' : text(value / scale.size);
  const begin = found.begin === null ? 0 : Date.parse(found.begin) / 1000;
  const length = series[0]?.values.length ?? 0;
  const several = new Set(series.map(one => one.node_rank)).size > 1;
  return {
    name: kind,
    title,
    unit: units[kind],
    times: Array.from({ length }, (_, at) => begin + at * found.step_s),
    top: kind === 'gpu' ? 100 : null,
    curves: series.map(one => ({
      label: labelOf(one, nodes, several, trans),
      values: one.values.map(value =>
        value === null ? null : value / scale.size
      ),
      last: said(one.last),
      peak: said(one.peak)
    })),
    text
  };
}

function labelOf(
  series: IResourceSeries,
  nodes: readonly string[],
  several: boolean,
  trans: TranslationBundle
): string {
  const { gpu, node_rank: nodeRank, rank } = series;
  const node = nodes[nodeRank] ?? trans.__('Node %1', nodeRank);
  if (rank !== null) {
    return trans.__('Rank %1', rank);
  }
  if (gpu === null) {
    return node;
  }
  return several ? trans.__('%1 GPU %2', node, gpu) : trans.__('GPU %1', gpu);
}
