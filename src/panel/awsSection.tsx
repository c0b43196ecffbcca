import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon, Toolbar } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';

import { IErrorBody } from '../api';
import { Age } from '../clusters/age';
import { ClustersModel } from '../clusters/model';
import { clusterStateText } from '../clusters/states';
import { ICluster, IClusterPage } from '../clusters/types';
import { CardLine, CardNote, ClusterCard } from '../components/clusterCard';
import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { Notes } from '../components/notes';
import { SignalWidget } from '../components/signalWidget';
import { DoctorLink } from '../doctor/doctorLink';
import { reachText } from '../clusters/reach';
import { RegionField } from '../clusters/regionField';
import type { RegionChoice } from '../clusters/regions';
import { IHyperpodCluster, IReach } from '../clusters/awsTypes';
import { orchestratorText } from '../clusters/awsWords';

/** Codes of there being no AWS account, or none that is known: no faults. */
const NO_REGION = 'no_aws_region';
const NO_ACCOUNT = ['no_aws_credentials', 'boto3_missing', NO_REGION];

/** Words for whether one can submit to a cluster that say all. */
const PLAIN = ['ready', 'not-looked'];

/** What the section does with the application. */
interface IActions {
  /** Open a cluster's page, by its name or ARN. */
  openHyperpodCluster(cluster: string, name: string): void;
  openDoctor(): void;
}

/**
 * The HyperPod clusters of the AWS account. AWS is not asked while it is hidden or folded.
 */
export class HyperpodSection
  extends SignalWidget
  implements Toolbar.IWidgetToolbar
{
  constructor(
    model: ClustersModel,
    regions: RegionChoice,
    actions: IActions,
    trans: TranslationBundle
  ) {
    super(model.changed);
    this._model = model;
    this._regions = regions;
    this.addClass('jp-HyperPod-Section');
    this.addClass('jp-HyperPod-Aws');
    this.title.label = trans.__('HyperPod in AWS');
    this._actions = actions;
    this._trans = trans;
    this.toolbar = new Toolbar();
    this.toolbar.addItem(
      'refresh',
      new IconButton(refreshIcon, trans.__('Refresh HyperPod clusters'), () =>
        model.refresh()
      )
    );
    model.changed.connect(this._onAnswer, this);
  }

  readonly toolbar: Toolbar;

  /** Tells once, by the first answer, that there is no AWS account. */
  get absent(): ISignal<this, void> {
    return this._absent;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      Signal.clearData(this);
      super.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._model.showAws(this.isVisible);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._model.showAws(true);
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._model.showAws(false);
  }

  protected override onBeforeDetach(msg: Message): void {
    this._model.showAws(false);
    super.onBeforeDetach(msg);
  }

  protected override render(): JSX.Element {
    const { error, value } = this._model;
    const { chosen } = this._regions;
    const problem = error ?? value?.problem ?? null;
    const isUnwell = problem !== null && !NO_ACCOUNT.includes(problem.code);
    // Another region tells something, unless there is no account.
    const canChoose =
      chosen !== null ||
      isUnwell ||
      problem?.code === NO_REGION ||
      Boolean(value?.as_of);
    return (
      <>
        {canChoose && (
          <RegionField regions={this._regions} trans={this._trans} />
        )}
        <HyperpodList
          model={this._model}
          open={({ name }, { arn, name: awsName }) =>
            this._actions.openHyperpodCluster(
              chosen === null ? name : arn,
              awsName
            )
          }
          trans={this._trans}
        />
        {isUnwell && (
          <DoctorLink
            open={() => this._actions.openDoctor()}
            trans={this._trans}
          />
        )}
      </>
    );
  }

  private _onAnswer({ value }: ClustersModel): void {
    if (value?.as_of || value?.problem) {
      this._model.changed.disconnect(this._onAnswer, this);
      if (NO_ACCOUNT.includes(value.problem?.code ?? '')) {
        this._absent.emit();
      }
    }
  }

  private readonly _absent = new Signal<this, void>(this);
  private readonly _model: ClustersModel;
  private readonly _regions: RegionChoice;
  private readonly _actions: IActions;
  private readonly _trans: TranslationBundle;
}

function HyperpodList(props: {
  model: ClustersModel;
  open: (cluster: ICluster, known: IHyperpodCluster) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, open, trans } = props;
  const { error, value } = model;
  const isThere = value && (value.as_of !== null || value.problem !== null);
  return (
    <>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={isThere ? undefined : () => model.refresh()}
        />
      )}
      {!isThere && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {isThere && (
        <Told
          page={value}
          more={() => model.more()}
          open={open}
          trans={trans}
        />
      )}
    </>
  );
}

/** What AWS told. */
function Told(props: {
  page: IClusterPage;
  more: () => void;
  open: (cluster: ICluster, known: IHyperpodCluster) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { more, open, page, trans } = props;
  const { as_of: asOf, clusters, loading, notes, problem, total } = page;
  const left = total - clusters.length;
  const items = clusters.flatMap(cluster =>
    cluster.hyperpod ? [{ cluster, known: cluster.hyperpod }] : []
  );
  return (
    <>
      {asOf === null && problem && <PlainLine problem={problem} />}
      <Age aged={page} trans={trans} />
      {items.length === 0 && !loading && !problem && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Your account has no HyperPod clusters in this region.')}
        </p>
      )}
      <ul
        className="jp-HyperPod-list"
        aria-label={trans.__('HyperPod clusters')}
      >
        {items.map(({ cluster, known }) => (
          <HyperpodItem
            key={cluster.name}
            cluster={known}
            isLoading={loading}
            open={() => open(cluster, known)}
            trans={trans}
          />
        ))}
      </ul>
      {left > 0 && (
        <button type="button" className="jp-HyperPod-button" onClick={more}>
          {trans._n('%1 more cluster', '%1 more clusters', left)}
        </button>
      )}
      <Notes notes={notes} />
    </>
  );
}

/** Why there is no list: credentials and rights are nobody's fault, so that is a plain line. */
function PlainLine({ problem }: { problem: IErrorBody }): JSX.Element {
  const { hint, message } = problem;
  return (
    <p className="jp-HyperPod-Message" role="note">
      {hint ? `${message}: ${hint}` : message}
    </p>
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
      stateText={clusterStateText(cluster.state, trans)}
      reason={cluster.reason}
      open={open}
      trans={trans}
    >
      <CardLine>
        {isWaited ? trans.__('Loading…') : detailText(cluster, trans)}
      </CardLine>
      {!isWaited && cluster.reach && cluster.reach.word !== 'configured' && (
        <CardNote words={reachLine(cluster.reach, trans)} />
      )}
      <CardNote words={cluster.reason ?? ''} />
    </ClusterCard>
  );
}

/** Whether one can submit to it from here; in words of its own where something is missing. */
function reachLine(
  { sentence, word }: IReach,
  trans: TranslationBundle
): string {
  const words = reachText(word, trans);
  return PLAIN.includes(word) ? words : `${words}: ${sentence}`;
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
