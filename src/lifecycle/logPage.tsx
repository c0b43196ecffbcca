import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { ILifecycleClient } from './client';

/**
 * The log of the script that makes this space ready, as a page of the main area.
 */
export class LifecycleLogPage extends ReactWidget {
  constructor(client: ILifecycleClient, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-ClusterPage');
    this.title.label = trans.__('HyperPod Start Log');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', this.title.label);
    this._load = () => client.log();
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return <Log load={this._load} trans={this._trans} />;
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }

  private readonly _load: ILifecycleClient['log'];
  private readonly _trans: TranslationBundle;
}

function Log(props: {
  load: ILifecycleClient['log'];
  trans: TranslationBundle;
}): JSX.Element {
  const { load, trans } = props;
  const { error, renew, value } = useLoaded(load);
  return (
    <>
      <h1>{trans.__('HyperPod Start Log')}</h1>
      {error && <ErrorMessage error={error} trans={trans} retry={renew} />}
      {value === null ? (
        !error && <p role="status">{trans.__('Loading…')}</p>
      ) : (
        <>
          <p className="jp-HyperPod-ClusterPage-note">
            {value.cut ? trans.__('Last lines of %1', value.path) : value.path}
          </p>
          <button type="button" className="jp-HyperPod-button" onClick={renew}>
            {trans.__('Refresh')}
          </button>
          <pre
            className="jp-HyperPod-Lifecycle-log"
            tabIndex={0}
            aria-label={trans.__('HyperPod Start Log')}
          >
            {value.text}
          </pre>
        </>
      )}
    </>
  );
}
