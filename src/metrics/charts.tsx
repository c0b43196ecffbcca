import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IMetric, IMetrics } from './client';
import { Sparkline } from './sparkline';
import { metricText, sourceText, valueText } from './words';

/**
 * Each metric with its course and its figures, and where they come from.
 */
export function Charts(props: {
  found: IMetrics;
  trans: TranslationBundle;
}): JSX.Element {
  const { found, trans } = props;
  return (
    <>
      {found.metrics.length > 0 && (
        <table className="jp-HyperPod-Metrics">
          <thead>
            <tr>
              <th scope="col">{trans.__('Metric')}</th>
              <th scope="col">{trans.__('Trend')}</th>
              <th scope="col">{trans.__('Latest')}</th>
              <th scope="col">{trans.__('Mean')}</th>
              <th scope="col">{trans.__('Min.')}</th>
              <th scope="col">{trans.__('Max.')}</th>
            </tr>
          </thead>
          <tbody>
            {found.metrics.map(metric => (
              <Row
                key={metric.name}
                metric={metric}
                found={found}
                trans={trans}
              />
            ))}
          </tbody>
        </table>
      )}
      {found.metrics.length > 0 && (
        <p className="jp-HyperPod-Message">
          {trans.__('Source: %1', sourceText(found.source))}
        </p>
      )}
      {found.notes.map(note => (
        <p key={note} className="jp-HyperPod-Message">
          {note}
        </p>
      ))}
    </>
  );
}

function Row(props: {
  metric: IMetric;
  found: IMetrics;
  trans: TranslationBundle;
}): JSX.Element {
  const { found, metric, trans } = props;
  const { highest, last, lowest, mean, points, unit } = metric;
  const name = metricText(metric.name, trans);
  const text = (value: number) => valueText(value, unit);
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <Sparkline
          points={points}
          begin={Date.parse(found.begin)}
          end={Date.parse(found.end)}
          period={found.period_s * 1000}
          top={unit === 'percent' ? 100 : highest}
          label={trans.__(
            '%1: from %2 to %3, now %4',
            name,
            text(lowest),
            text(highest),
            text(last)
          )}
        />
      </td>
      <td>{text(last)}</td>
      <td>{text(mean)}</td>
      <td>{text(lowest)}</td>
      <td>{text(highest)}</td>
    </tr>
  );
}
