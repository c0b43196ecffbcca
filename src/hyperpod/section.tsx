import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, Toolbar } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';

import { ApiError, IErrorBody } from '../api';
import { AwsAge } from '../clusters/awsAge';
import { StaleNote } from '../clusters/staleNote';
import { CardLine, CardNote, ClusterCard } from '../components/clusterCard';
import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { WatchingWidget } from '../components/watchingWidget';
import { DoctorLink } from '../doctor/doctorLink';
import type { IHyperpodClient } from './client';
import { reachText } from './reach';
import { RegionField } from './regionField';
import type { RegionChoice } from './regions';
import { IHyperpodCluster, IHyperpodList } from './types';
import { Watched } from './watched';
import { hyperpodStateText, orchestratorText } from './words';

/** Clusters that are shown at first, and that come with each click on more. */
const STEP = 100;

/** What the section does with the application. */
interface IActions {
  /** Open a cluster's page, by its name or ARN. */
  openHyperpodCluster(cluster: string, name: string): void;
  openDoctor(): void;
}

/**
 * The HyperPod clusters of the AWS account. Nothing is asked for while it is hidden or folded.
 */
export class HyperpodSection
  extends WatchingWidget<Watched<IHyperpodList>>
  implements Toolbar.IWidgetToolbar
{
  constructor(
    client: IHyperpodClient,
    regions: RegionChoice,
    actions: IActions,
    trans: TranslationBundle
  ) {
    const wanted = { limit: STEP };
    const list = new Watched(refresh =>
      client.list(wanted.limit, refresh, regions.chosen)
    );
    super(list);
    this._regions = regions;
    regions.changed.connect(this._onRegion, this);
    this.addClass('jp-HyperPod-Section');
    this.addClass('jp-HyperPod-Aws');
    this.title.label = trans.__('HyperPod in AWS');
    this._wanted = wanted;
    this._actions = actions;
    this._trans = trans;
    this.toolbar = new Toolbar();
    this.toolbar.addItem(
      'refresh',
      new IconButton(refreshIcon, trans.__('Refresh HyperPod clusters'), () =>
        list.refresh()
      )
    );
    list.changed.connect(this._onList, this);
  }

  readonly toolbar: Toolbar;

  /** Tells once, by the first answer, that there is no AWS account. */
  get absent(): ISignal<this, void> {
    return this._absent;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._regions.changed.disconnect(this._onRegion, this);
      Signal.clearData(this);
      super.dispose();
    }
  }

  protected override render(): JSX.Element {
    return (
      <>
        {this._canChoose && (
          <RegionField regions={this._regions} trans={this._trans} />
        )}
        <HyperpodList
          list={this.watched}
          open={({ arn, name }) =>
            this._actions.openHyperpodCluster(
              this._regions.chosen === null ? name : arn,
              name
            )
          }
          more={() => {
            this._wanted.limit += STEP;
            this.watched.reread();
          }}
          trans={this._trans}
        />
        {this._isUnwell && (
          <DoctorLink
            open={() => this._actions.openDoctor()}
            trans={this._trans}
          />
        )}
      </>
    );
  }

  /** Whether another region may tell something: not where there is no account. */
  private get _canChoose(): boolean {
    const { error, value } = this.watched;
    return value === null
      ? error !== null || this._regions.chosen !== null
      : value.as_of !== null ||
          this._regions.chosen !== null ||
          value.problem?.code === 'no_aws_region';
  }

  /** Whether the doctor may know more; that there is no account is nothing to examine. */
  private get _isUnwell(): boolean {
    const { error, value } = this.watched;
    return (
      error !== null ||
      (value !== null && value.as_of !== null && value.problem !== null)
    );
  }

  private _onRegion(): void {
    this._wanted.limit = STEP;
    this.watched.restart();
  }

  private _onList(list: Watched<IHyperpodList>): void {
    if (list.value !== null) {
      list.changed.disconnect(this._onList, this);
      if (list.value.as_of === null) {
        this._absent.emit();
      }
    }
  }

  private readonly _absent = new Signal<this, void>(this);
  private readonly _regions: RegionChoice;
  private readonly _wanted: { limit: number };
  private readonly _actions: IActions;
  private readonly _trans: TranslationBundle;
}

function HyperpodList(props: {
  list: Watched<IHyperpodList>;
  open: (cluster: IHyperpodCluster) => void;
  more: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { list, more, open, trans } = props;
  const { error, value } = list;
  if (value === null) {
    return error ? (
      <Trouble error={error} trans={trans} retry={() => list.refresh()} />
    ) : (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  const left = value.total - value.clusters.length;
  return (
    <>
      {error && <Trouble error={error} trans={trans} />}
      <Age list={value} trans={trans} />
      <ul
        className="jp-HyperPod-list"
        aria-label={trans.__('HyperPod clusters')}
      >
        {value.clusters.map(cluster => (
          <HyperpodItem
            key={cluster.arn}
            cluster={cluster}
            isLoading={value.loading}
            open={() => open(cluster)}
            trans={trans}
          />
        ))}
      </ul>
      {left > 0 && (
        <button type="button" className="jp-HyperPod-button" onClick={more}>
          {trans._n('%1 more cluster', '%1 more clusters', left)}
        </button>
      )}
      {value.notes.map(note => (
        <p key={note} className="jp-HyperPod-Message" role="note">
          {note}
        </p>
      ))}
    </>
  );
}

/** Why there is no list: credentials and rights are nobody's fault, so that is a plain line. */
function Trouble(props: {
  error: ApiError;
  trans: TranslationBundle;
  retry?: () => void;
}): JSX.Element {
  const { error } = props;
  return error.status === 403 ? (
    <PlainLine problem={error} />
  ) : (
    <ErrorMessage {...props} />
  );
}

function PlainLine({ problem }: { problem: IErrorBody }): JSX.Element {
  const { hint, message } = problem;
  return (
    <p className="jp-HyperPod-Message" role="note">
      {hint ? `${message}: ${hint}` : message}
    </p>
  );
}

/** Of when the list is; and in its place, why there is none. */
function Age(props: {
  list: IHyperpodList;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { list, trans } = props;
  const { as_of: asOf, clusters, loading, problem } = list;
  if (problem) {
    return asOf === null ? (
      <PlainLine problem={problem} />
    ) : (
      <StaleNote asOf={asOf} problem={problem} isAws trans={trans} />
    );
  }
  return (
    <>
      {clusters.length === 0 && !loading && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Your account has no HyperPod clusters in this region.')}
        </p>
      )}
      {asOf !== null && (
        <AwsAge asOf={asOf} isLoading={loading} trans={trans} />
      )}
    </>
  );
}

function HyperpodItem(props: {
  cluster: IHyperpodCluster;
  isLoading: boolean;
  open: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { cluster, isLoading, open, trans } = props;
  const isWaited =
    isLoading && cluster.described_at === null && !cluster.reason;
  return (
    <ClusterCard
      name={cluster.name}
      state={cluster.state}
      stateText={hyperpodStateText(cluster.state, trans)}
      reason={cluster.reason}
      open={open}
      trans={trans}
    >
      <CardLine>
        {isWaited ? trans.__('Loading…') : detailText(cluster, trans)}
      </CardLine>
      {!isWaited && cluster.reach && cluster.reach !== 'configured' && (
        <CardNote words={reachLine(cluster, trans)} />
      )}
      <CardNote words={cluster.reason ?? ''} />
    </ClusterCard>
  );
}

/** Whether one can submit to it from here; in words of its own where something is missing. */
function reachLine(
  cluster: IHyperpodCluster,
  trans: TranslationBundle
): string {
  const word = reachText(cluster.reach ?? '', trans);
  const isPlain = cluster.reach === 'ready' || cluster.reach === 'not-looked';
  return isPlain || !cluster.reach_reason
    ? word
    : `${word}: ${cluster.reach_reason}`;
}

function detailText(
  cluster: IHyperpodCluster,
  trans: TranslationBundle
): string {
  const { configured_as: configuredAs, nodes, orchestrator, target } = cluster;
  const parts = [orchestratorText(orchestrator, trans)];
  if (nodes !== null && target !== null) {
    parts.push(
      nodes === target
        ? trans._n('%1 node', '%1 nodes', nodes)
        : trans.__('%1 of %2 nodes', nodes, target)
    );
  }
  if (configuredAs.length > 0) {
    parts.push(trans.__('configured as %1', configuredAs.join(', ')));
  }
  return parts.join(' · ');
}
