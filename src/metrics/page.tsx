import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { WatchingPage } from '../components/watchingWidget';
import { IMetric, IMetrics, IMetricsClient } from './client';
import { MetricsModel } from './model';
import { Sparkline } from './sparkline';
import { metricText, valueText } from './words';

const HOUR = 3600;

/**
 * The metrics of a HyperPod cluster, or of one of its nodes, as small charts. Nothing is asked for while it is hidden.
 */
export class MetricsPage extends WatchingPage<MetricsModel> {
  constructor(options: MetricsPage.IOptions) {
    const { client, cluster, node, trans } = options;
    super(
      new MetricsModel(client, { cluster, node, seconds: HOUR }),
      trans.__('Metrics of %1', cluster)
    );
    this.cluster = cluster;
    this.instance = node;
    this._trans = trans;
  }

  readonly cluster: string;

  /** The node, or null: the whole cluster. */
  readonly instance: string | null;

  protected override render(): JSX.Element {
    return <Metrics model={this.watched} trans={this._trans} />;
  }

  private readonly _trans: TranslationBundle;
}

export namespace MetricsPage {
  export interface IOptions {
    cluster: string;
    node: string | null;
    client: IMetricsClient;
    trans: TranslationBundle;
  }
}

function Metrics(props: {
  model: MetricsModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const { error, subject, value } = model;
  const { cluster, node, seconds } = subject;
  return (
    <>
      <h1>
        {node === null
          ? trans.__('Metrics of %1', cluster)
          : trans.__('Metrics of %1 in %2', node, cluster)}
      </h1>
      <label className="jp-HyperPod-Metrics-time">
        {trans.__('Time')}
        <select
          className="jp-mod-styled"
          value={seconds}
          onChange={event => model.setSeconds(Number(event.target.value))}
        >
          <option value={HOUR}>{trans.__('Last hour')}</option>
          <option value={6 * HOUR}>{trans.__('Last 6 hours')}</option>
          <option value={24 * HOUR}>{trans.__('Last day')}</option>
          <option value={7 * 24 * HOUR}>{trans.__('Last 7 days')}</option>
        </select>
      </label>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.refresh()}
        />
      )}
      {value && <Charts found={value} trans={trans} />}
      {!value && !error && <p role="status">{trans.__('Loading…')}</p>}
    </>
  );
}

function Charts(props: {
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
              <th scope="col">{trans.__('Course')}</th>
              <th scope="col">{trans.__('Latest')}</th>
              <th scope="col">{trans.__('Mean')}</th>
              <th scope="col">{trans.__('Lowest')}</th>
              <th scope="col">{trans.__('Highest')}</th>
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
          begin={found.begin}
          end={found.end}
          period={found.period}
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
