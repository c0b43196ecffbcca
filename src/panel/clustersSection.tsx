import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, Toolbar } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ClustersModel } from '../clusters/model';
import { ICluster } from '../clusters/types';
import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { SignalWidget } from '../components/signalWidget';
import { StateChip } from '../components/stateChip';
import type { IPanelActions } from './panel';

/**
 * The clusters of the configuration.
 */
export class ClustersSection
  extends SignalWidget
  implements Toolbar.IWidgetToolbar
{
  constructor(
    model: ClustersModel,
    actions: IPanelActions,
    trans: TranslationBundle
  ) {
    super(model.changed);
    this.addClass('jp-HyperPod-Section');
    this.title.label = trans.__('Clusters');
    this._model = model;
    this._actions = actions;
    this._trans = trans;
    this.toolbar = new Toolbar();
    this.toolbar.addItem(
      'refresh',
      new IconButton(refreshIcon, trans.__('Look at the clusters again'), () =>
        model.refresh()
      )
    );
  }

  readonly toolbar: Toolbar;

  protected override render(): JSX.Element {
    return (
      <ClusterList
        model={this._model}
        actions={this._actions}
        trans={this._trans}
      />
    );
  }

  private readonly _model: ClustersModel;
  private readonly _actions: IPanelActions;
  private readonly _trans: TranslationBundle;
}

function ClusterList(props: {
  model: ClustersModel;
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, model, trans } = props;
  const { clusters, error } = model;
  if (clusters === null) {
    return error ? (
      <ErrorMessage error={error} trans={trans} retry={() => model.refresh()} />
    ) : (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Reading…')}
      </p>
    );
  }
  return (
    <>
      {error && <ErrorMessage error={error} trans={trans} />}
      <ul className="jp-HyperPod-list" aria-label={trans.__('Clusters')}>
        {clusters.map(cluster => (
          <li key={cluster.name}>
            <button
              type="button"
              className="jp-HyperPod-item"
              onClick={() => actions.openCluster(cluster.name)}
            >
              <span className="jp-HyperPod-item-name">{cluster.name}</span>
              <StateChip
                state={cluster.state}
                reason={cluster.reason}
                trans={trans}
              />
              <span className="jp-HyperPod-item-detail">
                {cluster.reason ?? detailText(cluster, trans)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {clusters.every(cluster => cluster.orchestrator === 'local') && (
        <p className="jp-HyperPod-Message">
          {trans.__(
            'Only this machine so far. A HyperPod cluster is added in the configuration file; “hpj doctor” in a terminal says where it is and checks it.'
          )}
        </p>
      )}
    </>
  );
}

function detailText(cluster: ICluster, trans: TranslationBundle): string {
  const { nodes, orchestrator, running, waiting } = cluster;
  if (nodes === null || running === null || waiting === null) {
    return orchestrator;
  }
  return trans.__(
    '%1 · nodes %2 · running %3 · waiting %4',
    orchestrator,
    nodes,
    running,
    waiting
  );
}
