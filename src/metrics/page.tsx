import { TranslationBundle } from '@jupyterlab/translation';
import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { WatchingPage } from '../components/watchingWidget';
import { Charts } from './charts';
import { IMetricsClient } from './client';
import { MetricsModel } from './model';

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
    return <Metrics model={this.watched} isPage trans={this._trans} />;
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

/**
 * The metrics of a cluster as a part of its page.
 */
export function MetricsTab(props: {
  client: IMetricsClient;
  cluster: string;
  isShown: () => boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, cluster, isShown, trans } = props;
  const [model] = React.useState(
    () =>
      new MetricsModel(
        client,
        { cluster, node: null, seconds: HOUR },
        () => !isShown() || document.hidden
      )
  );
  React.useEffect(() => {
    model.start();
    return () => model.stop();
  }, [model]);
  return (
    <UseSignal signal={model.changed}>
      {() => <Metrics model={model} trans={trans} />}
    </UseSignal>
  );
}

function Metrics(props: {
  model: MetricsModel;
  /** Whether it is a page of its own, which says whose metrics these are. */
  isPage?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { isPage = false, model, trans } = props;
  const { error, subject, value } = model;
  const { cluster, node, seconds } = subject;
  return (
    <>
      {isPage && (
        <h1>
          {node === null
            ? trans.__('Metrics of %1', cluster)
            : trans.__('Metrics of %1 in %2', node, cluster)}
        </h1>
      )}
      <label className="jp-HyperPod-Metrics-time">
        {trans.__('Time')}
        <select
          className="jp-HyperPod-select"
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
