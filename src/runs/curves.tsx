import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Chart } from '../charts/chart';
import { curveColour, isDashed } from '../charts/data';
import { IRunChart, IRunCurve } from './chartData';

/**
 * Charts side by side, with one cursor.
 */
export function Curves(props: {
  charts: readonly IRunChart[];
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
          // With a single sample there are only figures.
          fewest={2}
          spoken={chart.curves
            .map(one =>
              trans.__('%1: last %2, peak %3', one.label, one.last, one.peak)
            )
            .join('; ')}
        >
          {(at, focus) => (
            <Legend chart={chart} at={at} focus={focus} trans={trans} />
          )}
        </Chart>
      ))}
    </div>
  );
}

function Legend(props: {
  chart: IRunChart;
  at: number | null;
  focus: (index: number | null) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { at, chart, focus, trans } = props;
  return (
    <table className="jp-HyperPod-Chart-legend">
      <thead>
        <tr>
          <th scope="col">
            <span className="jp-HyperPod-hidden">{trans.__('Curve')}</span>
          </th>
          <th scope="col">
            {at === null ? trans.__('Last') : trans.__('At cursor')}
          </th>
          <th scope="col">{chart.peakTitle ?? trans.__('Peak')}</th>
        </tr>
      </thead>
      <tbody>
        {chart.curves.map((curve, index) => {
          return (
            <tr
              key={curve.label}
              onPointerEnter={() => focus(index)}
              onPointerLeave={() => focus(null)}
            >
              <th scope="row">
                <span
                  className="jp-HyperPod-Chart-swatch"
                  style={{
                    borderTopColor: curveColour(index, chart.curves.length)
                  }}
                  data-dashed={isDashed(index)}
                />
                {curve.label}
              </th>
              <td>
                {at === null ? curve.last : textAt(curve, at, chart.text)}
              </td>
              <td>{curve.peak}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** The value at a place, or just beside it: nodes are not sampled at the same moment. */
function textAt(
  { broken, values }: IRunCurve,
  at: number,
  text: (value: number) => string
): string {
  const known = [at, at - 1, at + 1].find(
    place => (values[place] ?? null) !== null || broken?.has(place)
  );
  const value = known === undefined ? null : values[known];
  return known === undefined ? '–' : value === null ? 'NaN' : text(value);
}
