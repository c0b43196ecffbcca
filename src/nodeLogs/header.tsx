import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { useLoaded } from '../components/useLoaded';
import { INodeLog, NodeLogClient } from './client';
import { kindText } from './words';

/**
 * Whose log it is, and which of its logs are shown.
 */
export class NodeLogHeader extends SignalWidget {
  constructor(options: NodeLogHeader.IOptions) {
    super(options.client.changed);
    this.addClass('jp-HyperPod-NodeLogHeader');
    this._options = options;
    this._checks = () => options.client.checks();
  }

  protected override render(): JSX.Element {
    return <Header {...this._options} loadChecks={this._checks} />;
  }

  private readonly _options: NodeLogHeader.IOptions;
  private readonly _checks: () => Promise<readonly INodeLog[]>;
}

export namespace NodeLogHeader {
  export interface IOptions {
    client: NodeLogClient;
    cluster: string;
    node: string;
    /** Show another log: its name, or null for all of the node. */
    choose: (stream: string | null) => void;
    trans: TranslationBundle;
  }
}

function Header(
  props: NodeLogHeader.IOptions & {
    loadChecks: () => Promise<readonly INodeLog[]>;
  }
): JSX.Element {
  const { cluster, loadChecks, node, trans } = props;
  const checks = useLoaded(loadChecks);
  const { error } = checks;
  return (
    <>
      <h1>{trans.__('Logs of %1 in %2', node, cluster)}</h1>
      <LogField {...props} checks={checks.value ?? []} />
      {error && !error.isNotFound && (
        <p className="jp-HyperPod-Table-note" role="note">
          {trans.__('Cannot list deep health checks: %1', error.message)}
        </p>
      )}
    </>
  );
}

function LogField(
  props: NodeLogHeader.IOptions & { checks: readonly INodeLog[] }
): JSX.Element {
  const { checks, choose, client, trans } = props;
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Log')}
      <select
        className="jp-HyperPod-select"
        value={client.chosen ?? ''}
        onChange={event => choose(event.target.value || null)}
      >
        <option value="">{trans.__('all logs of this node')}</option>
        {(client.logs ?? []).map(({ kind, stream }) => (
          <option key={stream} value={stream}>
            {kindText(kind, trans)}
          </option>
        ))}
        {checks.length > 0 && (
          <optgroup label={trans.__('Deep health checks (cluster)')}>
            {checks.map(({ stream }) => (
              <option key={stream} value={stream}>
                {stream.slice(stream.indexOf('/') + 1)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </label>
  );
}
