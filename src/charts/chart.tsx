import * as React from 'react';

import { momentText, shortMomentText } from '../components/words';
import { IChart } from './data';
import type { IPlot } from './plot';

/** Load what draws charts. */
export function loadPlot(): Promise<typeof import('./plot')> {
  return import('./plot');
}

/**
 * A chart with its figures. What draws it is loaded with the first one.
 */
export function Chart(props: {
  chart: IChart;
  /** All charts with one key share the cursor. */
  cursorKey: string;
  /** What a screen reader says of the curves. */
  spoken: string;
  /** Values of which fewer are not worth a drawing. */
  fewest?: number;
  /** The figures: those at the cursor (null: it is elsewhere), and what brings a curve to the front. */
  children: (
    at: number | null,
    focus: (index: number | null) => void
  ) => JSX.Element;
}): JSX.Element {
  const { chart, children, cursorKey, fewest = 1, spoken } = props;
  const node = React.useRef<HTMLDivElement>(null);
  const [at, setAt] = React.useState<number | null>(null);
  const isDrawn = chart.curves.some(one => countOf(one.values) >= fewest);
  const focus = usePlot(node, chart, isDrawn, cursorKey, setAt);
  const moment = at === null ? undefined : chart.times[at];
  return (
    <figure className="jp-HyperPod-Chart">
      <figcaption>
        {chart.title}
        {chart.unit && (
          <span className="jp-HyperPod-Chart-unit">{chart.unit}</span>
        )}
        <span className="jp-HyperPod-Chart-time">
          {moment === undefined
            ? ''
            : (chart.xText?.(moment) ?? timeText(moment, chart.times))}
        </span>
      </figcaption>
      {isDrawn && (
        <div
          ref={node}
          className="jp-HyperPod-Chart-plot"
          role="img"
          aria-label={`${chart.title}. ${spoken}`}
        />
      )}
      {children(at, focus)}
    </figure>
  );
}

/** A time of a chart; with seconds where there are several values in a minute. */
function timeText(time: number, times: readonly number[]): string {
  const iso = new Date(time * 1000).toISOString();
  return times[1] - times[0] < 60 ? momentText(iso) : shortMomentText(iso);
}

function countOf(values: readonly (number | null)[]): number {
  return values.filter(value => value !== null).length;
}

/** Draws a chart, and keeps the drawing in step with its values; gives what brings a curve to the front. */
function usePlot(
  node: React.RefObject<HTMLDivElement>,
  chart: IChart,
  isDrawn: boolean,
  key: string,
  setAt: (at: number | null) => void
): (index: number | null) => void {
  const plot = React.useRef<IPlot | null>(null);
  const latest = React.useRef(chart);
  latest.current = chart;
  React.useEffect(() => {
    let wanted = true;
    void loadPlot().then(({ drawPlot }) => {
      if (wanted && node.current) {
        plot.current = drawPlot(node.current, latest.current, key, setAt);
      }
    });
    return () => {
      wanted = false;
      plot.current?.destroy();
      plot.current = null;
    };
  }, [node, isDrawn, key, setAt]);
  React.useEffect(() => plot.current?.setChart(chart), [chart]);
  return index => plot.current?.focus(index);
}
