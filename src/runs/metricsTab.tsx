import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { WatchingWidget } from '../components/watchingWidget';
import { Charts } from '../metrics/charts';
import { RunMetricsModel } from '../metrics/model';
import { IRunClient, IRunMetrics } from './client';

/** What the server says of a run of which there can be none, or that has not begun. */
const NONE = ['unsupported', 'wrong_state'];

/**
 * What AWS measured on a run's nodes. Nothing is asked for before it is seen.
 */
export class MetricsTab extends WatchingWidget<RunMetricsModel> {
  constructor(
    client: Pick<IRunClient, 'metrics'>,
    runId: string,
    trans: TranslationBundle
  ) {
    super(new RunMetricsModel(client, runId));
    this.addClass('jp-HyperPod-MetricsTab');
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    const { error, value } = this.watched;
    const trans = this._trans;
    if (error && NONE.includes(error.code)) {
      return (
        <p className="jp-HyperPod-Message" role="status">
          {error.hint ? `${error.message}. ${error.hint}` : error.message}
        </p>
      );
    }
    return (
      <>
        {error && (
          <ErrorMessage
            error={error}
            trans={trans}
            retry={() => this.watched.refresh()}
          />
        )}
        {value && <Found found={value} trans={trans} />}
        {!value && !error && <p role="status">{trans.__('Loading…')}</p>}
      </>
    );
  }

  private readonly _trans: TranslationBundle;
}

function Found(props: {
  found: IRunMetrics;
  trans: TranslationBundle;
}): JSX.Element {
  const { found, trans } = props;
  const [name, setName] = React.useState('');
  const chosen = found.nodes.find(one => one.node === name) ?? found.whole;
  return (
    <>
      {found.nodes.length > 1 && (
        <label className="jp-HyperPod-Metrics-time">
          {trans.__('Node')}
          <select
            className="jp-HyperPod-select"
            value={chosen.node ?? ''}
            onChange={event => setName(event.target.value)}
          >
            <option value="">
              {trans.__('Mean of %1 nodes', found.nodes.length)}
            </option>
            {found.nodes.map(one => (
              <option key={one.node} value={one.node ?? ''}>
                {one.node}
              </option>
            ))}
          </select>
        </label>
      )}
      <Charts found={chosen} trans={trans} />
    </>
  );
}
