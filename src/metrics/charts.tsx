import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Chart } from '../charts/chart';
import { IMetricChart, metricCharts } from './chartData';
import { IMetrics } from './client';
import { sourceText } from './words';

/**
 * A chart of each metric with its figures, and where they come from.
 */
export function Charts(props: {
  found: IMetrics;
  trans: TranslationBundle;
}): JSX.Element {
  const { found, trans } = props;
  const key = React.useId();
  // Drawn again only for other values.
  const charts = React.useMemo(
    () => metricCharts(found, trans),
    [found, trans]
  );
  return (
    <>
      <div className="jp-HyperPod-Metrics">
        {charts.map(chart => (
          <Chart
            key={chart.name}
            chart={chart}
            cursorKey={key}
            spoken={chart.figures.map(one => one.join(' ')).join(', ')}
          >
            {at => <Figures chart={chart} at={at} trans={trans} />}
          </Chart>
        ))}
      </div>
      <p className="jp-HyperPod-Message">
        {charts.length > 0
          ? trans.__('Source: %1', sourceText(found.source))
          : trans.__('No measurements in this time.')}
      </p>
      {found.notes.map(note => (
        <p key={note} className="jp-HyperPod-Message">
          {note}
        </p>
      ))}
    </>
  );
}

/** The latest value, or that at the cursor; mean, minimum and maximum; the limit if there is one. */
function Figures(props: {
  chart: IMetricChart;
  at: number | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { at, chart, trans } = props;
  const [latest, ...others] = chart.figures;
  const value = at === null ? null : chart.curves[0].values[at];
  return (
    <dl className="jp-HyperPod-Metrics-figures">
      <dt>{at === null ? latest[0] : trans.__('At cursor')}</dt>
      <dd>
        {at === null ? latest[1] : value === null ? '–' : chart.text(value)}
      </dd>
      {others.map(([name, text]) => (
        <React.Fragment key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </React.Fragment>
      ))}
      {chart.limit !== null && (
        <>
          <dt className="jp-HyperPod-Metrics-limit">{trans.__('Limit')}</dt>
          <dd>{chart.text(chart.limit)}</dd>
        </>
      )}
    </dl>
  );
}
