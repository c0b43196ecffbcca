import uPlot from 'uplot';

import { onTheme } from '../components/useTheme';
import { pageLanguage } from '../components/words';
import { curveColour, IChart, isDashed } from './data';

const AXIS_WIDTH = 64;
/** Room above a fixed upper edge, so that a line on it is visible. */
const ABOVE = 1.05;
/** Steps of an axis with whole numbers. */
const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5].flatMap(ten => [
  ten,
  2 * ten,
  5 * ten
]);
/** The same of days. */
const DAYS = [1, 2, 7, 14, 28, 56];
/** A bar's share of its place, and its largest width in pixels. */
const BARS: uPlot.Series.BarsPathBuilderOpts = { size: [0.75, 48] };

/**
 * A drawn chart.
 */
export interface IPlot {
  /** Draw other values of the same curves. */
  setChart(chart: IChart): void;
  /** Bring one curve to the front; null for all. */
  focus(index: number | null): void;
  destroy(): void;
}

/**
 * Draws a chart into a node, and redraws it when the theme or the size changes. All charts with one key share the cursor.
 *
 * @param onCursor - called with the index of the time under the cursor; null: none
 */
export function drawPlot(
  node: HTMLElement,
  chart: IChart,
  key: string,
  onCursor: (index: number | null) => void
): IPlot {
  let current = chart;
  let colours = coloursOf(node, chart);
  const axis = {
    stroke: () => colours.text,
    font: `11px ${getComputedStyle(node).fontFamily}`,
    ticks: { show: false },
    grid: { stroke: () => colours.grid, width: 1 }
  };
  const plot = new uPlot(
    {
      width: Math.max(1, node.clientWidth),
      height: Math.max(1, node.clientHeight),
      padding: [8, 12, 0, 0],
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: {
        sync: { key, setSeries: false },
        drag: { x: chart.isZoomable ?? false, y: false },
        points: { size: 6, show: !chart.isStacked }
      },
      scales: scalesOf(chart, () => current),
      axes: [
        {
          ...axis,
          size: 24,
          space: 84,
          grid: { show: false },
          ...(chart.isStacked && { incrs: DAYS }),
          values: (_, splits) =>
            splits.map(x =>
              current.xText
                ? current.xText(x)
                : momentOf(x, splits[1] - splits[0])
            )
        },
        {
          ...axis,
          size: AXIS_WIDTH,
          space: 28,
          ...(chart.isWhole && { incrs: WHOLE }),
          // A logarithmic axis leaves out some of its steps.
          values: (_, splits) =>
            splits.map(value => (value === null ? '' : current.text(value)))
        }
      ],
      ...seriesOf(chart, () => colours),
      hooks: {
        setCursor: [self => onCursor(self.cursor.idx ?? null)],
        draw: [
          self => drawLimit(self, current.limit ?? null, colours.limit),
          self => drawMarks(self, current.marks ?? [], colours.text)
        ]
      }
    },
    dataOf(chart),
    node
  );
  const resized = new ResizeObserver(() => {
    const { clientHeight: height, clientWidth: width } = node;
    // The observer reports the initial size too; the chart has that size already.
    if (width > 0 && (width !== plot.width || height !== plot.height)) {
      plot.setSize({ width, height });
    }
  });
  resized.observe(node);
  const forgetTheme = onTheme(() => {
    colours = coloursOf(node, chart);
    plot.redraw();
  });
  return {
    setChart: next => {
      current = next;
      plot.setData(dataOf(next));
    },
    focus: index =>
      plot.setSeries(index === null ? null : index + 1, { focus: true }),
    destroy: () => {
      resized.disconnect();
      forgetTheme();
      plot.destroy();
    }
  };
}

type Colours = Record<'text' | 'grid' | 'limit' | 'fill', string> & {
  curves: string[];
};

/** The theme's colours, as a canvas understands them. */
function coloursOf(node: HTMLElement, chart: IChart): Colours {
  const shown = (css: string) => {
    node.style.color = css;
    const { color } = getComputedStyle(node);
    node.style.color = '';
    return color;
  };
  return {
    text: shown('var(--jp-ui-font-color2)'),
    grid: shown('var(--jp-border-color2)'),
    limit: shown('var(--jp-error-color1)'),
    fill: shown('color-mix(in srgb, var(--jp-brand-color1) 15%, transparent)'),
    curves: chart.curves.map((curve, index) =>
      shown(curve.colour ?? curveColour(index, chart.curves.length))
    )
  };
}

/** Values between two gaps, which are drawn as dots. */
function pointsAlone(
  self: uPlot,
  series: number,
  isShown: boolean
): number[] | null {
  if (isShown || self.series[series].spanGaps) {
    return null;
  }
  const values = self.data[series];
  const alone: number[] = [];
  values.forEach((value, at) => {
    const isAlone = [values[at - 1], values[at + 1]].every(
      one => (one ?? null) === null
    );
    if (value !== null && isAlone) {
      alone.push(at);
    }
  });
  return alone;
}

function drawLimit(self: uPlot, limit: number | null, colour: string): void {
  if (limit === null) {
    return;
  }
  const { ctx } = self;
  const { left, width } = self.bbox;
  const y = Math.round(self.valToPos(limit, 'y', true));
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(left, y);
  ctx.lineTo(left + width, y);
  ctx.stroke();
  ctx.restore();
}

/** The axes' ranges: free, logarithmic, or from 0. */
function scalesOf(chart: IChart, current: () => IChart): uPlot.Scales {
  const y: uPlot.Scale = chart.isLog
    ? { distr: 3 }
    : chart.isFree
      ? {}
      : { range: (_, __, largest) => [0, topOf(current(), largest)] };
  const x: uPlot.Scale = { time: chart.xText === undefined };
  if (chart.isStacked) {
    // Half a bar on both sides. What uPlot passes has these already when it draws again.
    x.range = () => {
      const { times } = current();
      return [times[0] - 0.5, times[times.length - 1] + 0.5];
    };
  }
  return { x, y };
}

/** The curves, and the band behind them. */
function seriesOf(
  chart: IChart,
  colours: () => Colours
): Pick<uPlot.Options, 'bands' | 'series'> {
  const { curves, times } = chart;
  if (chart.isStacked) {
    const paths = uPlot.paths.bars?.(BARS);
    const points = { show: false };
    const bars = curves.map((_, index) => ({
      ...{ paths, points, width: 0 },
      fill: () => colours().curves[index]
    }));
    return { series: [{}, ...bars] };
  }
  const isFilled = curves.length === 1 && !chart.isFree && !chart.isLog;
  const series: uPlot.Series[] = curves.map((curve, index) => ({
    label: curve.label,
    stroke: () => colours().curves[index],
    ...(isFilled && { fill: () => colours().fill }),
    width: 1.5,
    dash: isDashed(index) ? [6, 3] : undefined,
    points: { show: times.length < 3, filter: pointsAlone },
    spanGaps: !chart.hasGaps
  }));
  if (!chart.band) {
    return { series: [{}, ...series] };
  }
  const first = curves.length + 1;
  return {
    series: [{}, ...series, BAND_EDGE, BAND_EDGE],
    bands: [{ series: [first + 1, first], fill: () => colours().fill }]
  };
}

/** The edges of a band are not drawn themselves. */
const BAND_EDGE = { width: 0, points: { show: false }, spanGaps: true };

function drawMarks(
  self: uPlot,
  marks: readonly number[],
  colour: string
): void {
  const { ctx } = self;
  const { height, top } = self.bbox;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  for (const mark of marks) {
    const x = Math.round(self.valToPos(mark, 'x', true));
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
  }
  ctx.stroke();
  ctx.restore();
}

/** A time on the axis, as precise as its steps. */
function momentOf(time: number, step: number): string {
  const second = step < 60 ? '2-digit' : undefined;
  const day = step >= 86_400 ? 'short' : undefined;
  return new Intl.DateTimeFormat(pageLanguage(), {
    hour: '2-digit',
    minute: '2-digit',
    second,
    hour12: false,
    weekday: day
  }).format(new Date(time * 1000));
}

function dataOf(chart: IChart): uPlot.AlignedData {
  const { band, curves, isLog, times } = chart;
  // A logarithm has no place for what is not positive.
  const shown = (values: readonly (number | null)[]) =>
    isLog
      ? values.map(value => (value !== null && value > 0 ? value : null))
      : [...values];
  if (chart.isStacked) {
    return [[...times], ...stackOf(curves)];
  }
  return [
    [...times],
    ...curves.map(curve => shown(curve.values)),
    ...(band ? [shown(band.low), shown(band.high)] : [])
  ];
}

/** Each curve's values on top of those after it. Those after it are drawn over it. */
function stackOf(curves: IChart['curves']): number[][] {
  let below: number[] = [];
  return [...curves]
    .reverse()
    .map(({ values }) => {
      below = values.map((value, at) => (value ?? 0) + (below[at] ?? 0));
      return below;
    })
    .reverse();
}

function topOf(chart: IChart, largest: number | null): number {
  // A chart of zeros needs some height too.
  return chart.top ? chart.top * ABOVE : (largest ?? 0) * 1.1 || 1;
}
