import { TranslationBundle } from '@jupyterlab/translation';

import { IResourceSeries, IRunResources } from './client';
import { bytesText, byteUnit, numberText } from './words';

/**
 * One line of a chart.
 */
export interface ICurve {
  readonly label: string;
  /** In the chart's unit, one for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** The newest and the largest value in words. */
  readonly last: string;
  readonly peak: string;
}

/**
 * A chart: curves over time, in one unit.
 */
export interface IChart {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  /** The value at the upper edge; null: the largest one. */
  readonly top: number | null;
  readonly curves: readonly ICurve[];
  /** A value in words. */
  readonly text: (value: number) => string;
}

/** Colours that are told from each other, in light and dark themes, by most people. */
const COLOURS = [
  '#4c78d0',
  '#e07b39',
  '#2f9e76',
  '#c2559d',
  '#b59410',
  '#7a63c9',
  '#37a3b8',
  '#c7504c'
];

/** A curve's colour: after the last one they begin anew. */
export function curveColour(index: number): string {
  return COLOURS[index % COLOURS.length];
}

/** Those that begin anew are dashed. */
export function isDashed(index: number): boolean {
  return index >= COLOURS.length;
}

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
): readonly IChart[] {
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
): IChart {
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
