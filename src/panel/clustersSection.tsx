import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, Toolbar } from '@jupyterlab/ui-components';
import * as React from 'react';

import { callsText } from '../clusters/callsNote';
import { ClustersModel } from '../clusters/model';
import { clusterStateText } from '../clusters/states';
import { ICluster, schedulerCalls } from '../clusters/types';
import { CardLine, CardNote, ClusterCard } from '../components/clusterCard';
import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { SignalWidget } from '../components/signalWidget';
import { useTick } from '../components/useTick';
import { durationText } from '../components/words';
import { DoctorLink } from '../doctor/doctorLink';
import type { IPanelActions } from './panel';

/** States of which the doctor may know more. */
const UNWELL = ['unreachable', 'misconfigured', 'down'];

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
      new IconButton(refreshIcon, trans.__('Refresh clusters'), () =>
        model.reread()
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
  const { configured: clusters, error } = model;
  if (clusters === null) {
    return error ? (
      <>
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.reread()}
        />
        <DoctorLink open={() => actions.openDoctor()} trans={trans} />
      </>
    ) : (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  return (
    <>
      {error && <ErrorMessage error={error} trans={trans} />}
      <ul className="jp-HyperPod-list" aria-label={trans.__('Clusters')}>
        {clusters.map(cluster => (
          <ClusterItem
            key={cluster.name}
            cluster={cluster}
            open={() => actions.openCluster(cluster.name)}
            trans={trans}
          />
        ))}
      </ul>
      {clusters.some(cluster => UNWELL.includes(cluster.state)) && (
        <DoctorLink open={() => actions.openDoctor()} trans={trans} />
      )}
      {clusters.every(cluster => cluster.orchestrator === 'local') && (
        <p className="jp-HyperPod-Message">
          {trans.__(
            'Only this machine is configured. To add a HyperPod cluster, edit the configuration file. To find and check it, run “hpj doctor” in a terminal.'
          )}
        </p>
      )}
    </>
  );
}

function ClusterItem(props: {
  cluster: ICluster;
  open: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { cluster, open, trans } = props;
  const isUp = cluster.state === 'up';
  const calls = schedulerCalls(cluster);
  return (
    <ClusterCard
      name={cluster.name}
      state={cluster.state}
      stateText={clusterStateText(cluster.state, trans)}
      reason={cluster.reason}
      open={open}
      trans={trans}
    >
      <CardLine>
        {isUp
          ? detailText(cluster, trans)
          : (cluster.reason ?? detailText(cluster, trans))}
      </CardLine>
      {isUp && <CardNote words={wordsOf(cluster)} />}
      {calls !== null && <CardLine>{callsText(calls, trans)}</CardLine>}
      {cluster.as_of && (
        <OldNumbers cluster={cluster} asOf={cluster.as_of} trans={trans} />
      )}
    </ClusterCard>
  );
}

function wordsOf({ notes, reason }: ICluster): string {
  return [...(reason === null ? [] : [reason]), ...notes].join('; ');
}

/** What a cluster that does not answer said last, and how long ago. */
function OldNumbers(props: {
  cluster: ICluster;
  asOf: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { asOf, cluster, trans } = props;
  useTick(true);
  return (
    <CardLine>
      {trans.__(
        'Updated %1 ago: %2',
        durationText(asOf, null, trans),
        detailText(cluster, trans)
      )}
    </CardLine>
  );
}

function detailText(cluster: ICluster, trans: TranslationBundle): string {
  const { nodes, orchestrator, running, waiting } = cluster;
  if (running === null || waiting === null) {
    return orchestrator;
  }
  if (nodes === null) {
    return trans.__(
      '%1 · running %2 · waiting %3',
      orchestrator,
      running,
      waiting
    );
  }
  return trans.__(
    '%1 · nodes %2 · running %3 · waiting %4',
    orchestrator,
    nodes,
    running,
    waiting
  );
}
