import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { momentText } from '../components/words';
import { curveColour, IChart, isDashed } from './chartData';
import type { IPlot } from './plot';

/**
 * Charts side by side, with one cursor. What draws them is loaded with the first one.
 */
export function Curves(props: {
  charts: readonly IChart[];
  trans: TranslationBundle;
}): JSX.Element {
  const { charts, trans } = props;
  const key = React.useId();
  return (
    <div className="jp-HyperPod-Curves">
      {charts.map(chart => (
        <Chart
          // Other curves, or another theme's colours, are another drawing.
          key={`${chart.name} ${chart.curves.map(one => one.label).join()}`}
          chart={chart}
          cursorKey={key}
          trans={trans}
        />
      ))}
    </div>
  );
}

function Chart(props: {
  chart: IChart;
  cursorKey: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { chart, cursorKey, trans } = props;
  const node = React.useRef<HTMLDivElement>(null);
  const [at, setAt] = React.useState<number | null>(null);
  // A dot is no curve: a short run has its figures only.
  const isDrawn = chart.curves.some(one => countOf(one.values) > 1);
  const focus = usePlot(node, chart, isDrawn, cursorKey, setAt);
  const spoken = chart.curves
    .map(one => trans.__('%1: last %2, peak %3', one.label, one.last, one.peak))
    .join('; ');
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
            : momentText(new Date(moment * 1000).toISOString())}
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
      <table className="jp-HyperPod-Chart-legend">
        <thead>
          <tr>
            <th scope="col">
              <span className="jp-HyperPod-hidden">{trans.__('Curve')}</span>
            </th>
            <th scope="col">
              {moment === undefined ? trans.__('Last') : trans.__('Then')}
            </th>
            <th scope="col">{trans.__('Peak')}</th>
          </tr>
        </thead>
        <tbody>
          {chart.curves.map((curve, index) => {
            const value = at === null ? null : nearest(curve.values, at);
            return (
              <tr
                key={curve.label}
                onPointerEnter={() => focus(index)}
                onPointerLeave={() => focus(null)}
              >
                <th scope="row">
                  <span
                    className="jp-HyperPod-Chart-swatch"
                    style={{ borderTopColor: curveColour(index) }}
                    data-dashed={isDashed(index)}
                  />
                  {curve.label}
                </th>
                <td>
                  {at === null
                    ? curve.last
                    : value === null
                      ? '–'
                      : chart.text(value)}
                </td>
                <td>{curve.peak}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </figure>
  );
}

/** The value at a time, or just beside it: nodes are not sampled at the same moment. */
function nearest(
  values: readonly (number | null)[],
  at: number
): number | null {
  return values[at] ?? values[at - 1] ?? values[at + 1] ?? null;
}

function countOf(values: readonly (number | null)[]): number {
  return values.filter(value => value !== null).length;
}

/** Draws a chart, and keeps the drawing in step with its values, its room and the theme; gives what brings a curve to the front. */
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
  const [theme, setTheme] = React.useState(0);
  React.useEffect(() => {
    let wanted = true;
    const resized = new ResizeObserver(() => {
      const { clientHeight = 0, clientWidth = 0 } = node.current ?? {};
      if (clientWidth > 0) {
        plot.current?.resize(clientWidth, clientHeight);
      }
    });
    void import('./plot').then(({ drawPlot }) => {
      if (wanted && node.current) {
        plot.current = drawPlot(node.current, latest.current, key, setAt);
        resized.observe(node.current);
      }
    });
    const themed = new MutationObserver(() => setTheme(turn => turn + 1));
    const attributeFilter = ['data-jp-theme-name', 'data-jp-theme-light'];
    themed.observe(document.body, { attributeFilter });
    return () => {
      wanted = false;
      resized.disconnect();
      themed.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [node, isDrawn, key, setAt, theme]);
  React.useEffect(() => plot.current?.setChart(chart), [chart]);
  return index => plot.current?.focus(index);
}
