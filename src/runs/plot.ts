import uPlot from 'uplot';

import { pageLanguage } from '../components/words';
import { curveColour, IChart, isDashed } from './chartData';

const AXIS_WIDTH = 56;

/**
 * A drawn chart.
 */
export interface IPlot {
  /** Draw other values of the same curves. */
  setChart(chart: IChart): void;
  resize(width: number, height: number): void;
  /** Bring one curve to the front; null for all. */
  focus(index: number | null): void;
  destroy(): void;
}

/**
 * Draws a chart into a node. All charts with one key share the cursor.
 *
 * @param onCursor - is told at which of the times the cursor is; null: nowhere
 */
export function drawPlot(
  node: HTMLElement,
  chart: IChart,
  key: string,
  onCursor: (index: number | null) => void
): IPlot {
  const colour = (name: string) =>
    getComputedStyle(node).getPropertyValue(name).trim();
  const text = colour('--jp-ui-font-color2');
  const line = colour('--jp-border-color2');
  const font = `11px ${getComputedStyle(node).fontFamily}`;
  const axis = {
    stroke: text,
    font,
    ticks: { show: false },
    grid: { stroke: line, width: 1 }
  };
  let current = chart;
  const plot = new uPlot(
    {
      width: Math.max(1, node.clientWidth),
      height: Math.max(1, node.clientHeight),
      legend: { show: false },
      focus: { alpha: 0.25 },
      cursor: {
        sync: { key, setSeries: false },
        drag: { x: false, y: false },
        points: { size: 6 }
      },
      scales: {
        x: { time: true },
        y: { range: (_, __, largest) => [0, topOf(current, largest)] }
      },
      axes: [
        {
          ...axis,
          size: 24,
          space: 84,
          grid: { show: false },
          values: (_, splits) =>
            splits.map(time => momentOf(time, splits[1] - splits[0]))
        },
        {
          ...axis,
          size: AXIS_WIDTH,
          space: 28,
          values: (_, splits) => splits.map(value => current.text(value))
        }
      ],
      series: [
        {},
        ...chart.curves.map((curve, index) => ({
          label: curve.label,
          stroke: curveColour(index),
          width: 1.5,
          dash: isDashed(index) ? [6, 3] : undefined,
          points: { show: chart.times.length < 3 },
          spanGaps: true
        }))
      ],
      hooks: {
        setCursor: [self => onCursor(self.cursor.idx ?? null)]
      }
    },
    dataOf(chart),
    node
  );
  return {
    setChart: next => {
      current = next;
      plot.setData(dataOf(next));
    },
    resize: (width, height) => plot.setSize({ width, height }),
    focus: index =>
      plot.setSeries(index === null ? null : index + 1, { focus: true }),
    destroy: () => plot.destroy()
  };
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
  return [[...chart.times], ...chart.curves.map(curve => [...curve.values])];
}

function topOf(chart: IChart, largest: number | null): number {
  // A chart of noughts needs some height too.
  return chart.top ?? ((largest ?? 0) * 1.1 || 1);
}
