import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';
import * as React from 'react';

import { IErrorBody } from '../api';
import { RegionField } from '../clusters/regionField';
import type { RegionChoice } from '../clusters/regions';
import type { ClusterStore } from '../clusters/store';
import { ICluster } from '../clusters/types';
import { ErrorMessage, errorText } from '../components/errorMessage';
import { useRows } from '../components/useRows';
import { agoText } from '../components/words';
import { DoctorLink } from '../doctor/doctorLink';
import type { IPanelActions } from './actions';
import { ClusterRow } from './clusterRow';
import { clusterEntries } from './menus';
import { PanelSection } from './section';

/** Codes of there being no AWS account, or none that is known: no faults. */
const NO_REGION = 'no_aws_region';
const NO_ACCOUNT = ['no_aws_credentials', 'boto3_missing', NO_REGION];

/** States of which the doctor may know more. */
const UNWELL = ['unreachable', 'misconfigured', 'down'];

/**
 * The clusters of the configuration, then the account's others. Nothing is asked while it is hidden or folded.
 */
export class ClustersSection extends PanelSection {
  constructor(
    store: ClusterStore,
    regions: RegionChoice,
    actions: IPanelActions,
    trans: TranslationBundle
  ) {
    super(store.changed, trans.__('Clusters'), trans);
    this._store = store;
    this._regions = regions;
    this._actions = actions;
  }

  protected override onOpen(isOpen: boolean): void {
    if (!isOpen) {
      this._watcher?.dispose();
      this._watcher = null;
    } else {
      this._watcher ??= this._store.watch({ aws: true });
    }
  }

  protected override renderControls(): React.ReactNode {
    const problem = problemOf(this._store);
    // Another region tells something, unless there is no account.
    const canChoose =
      this._regions.chosen !== null ||
      isFault(problem) ||
      problem?.code === NO_REGION ||
      Boolean(this._store.aws?.as_of);
    return (
      canChoose && <RegionField regions={this._regions} trans={this.trans} />
    );
  }

  protected override renderContent(): React.ReactNode {
    const { _actions: actions, _store: store, trans } = this;
    const { clusters, error } = store;
    const problem = problemOf(store);
    const retry = () => void store.refresh();
    const isUnwell =
      isFault(problem) ||
      (clusters === null && error !== null) ||
      clusters?.some(one => UNWELL.includes(one.state));
    return (
      <div className="jp-HyperPod-PanelSection-content">
        {error && (
          <ErrorMessage
            error={error}
            trans={trans}
            retry={clusters === null ? retry : undefined}
          />
        )}
        {clusters === null && !error && (
          <p className="jp-HyperPod-Message" role="status">
            {trans.__('Loading…')}
          </p>
        )}
        {clusters && (
          <ClusterList
            clusters={clusters}
            isLoading={store.aws?.loading ?? false}
            isAlone={
              problem !== null ||
              (Boolean(store.aws?.as_of) && !store.aws?.loading)
            }
            actions={actions}
            trans={trans}
          />
        )}
        <AwsLines
          store={store}
          problem={isFault(problem) ? problem : null}
          isRegionChosen={this._regions.chosen !== null}
          trans={trans}
        />
        {isUnwell && (
          <DoctorLink open={() => actions.openDoctor()} trans={trans} />
        )}
      </div>
    );
  }

  private readonly _store: ClusterStore;
  private readonly _regions: RegionChoice;
  private readonly _actions: IPanelActions;
  private _watcher: IDisposable | null = null;
}

/** Why AWS' clusters are not known, or not as they are now. */
function problemOf({ aws, awsError, error }: ClusterStore): IErrorBody | null {
  // One message for a server that does not answer.
  return error ? null : (awsError ?? aws?.problem ?? null);
}

function isFault(problem: IErrorBody | null): boolean {
  return problem !== null && !NO_ACCOUNT.includes(problem.code);
}

function ClusterList(props: {
  clusters: readonly ICluster[];
  isLoading: boolean;
  /** Whether AWS has answered: there are no others then. */
  isAlone: boolean;
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, clusters, isAlone, isLoading, trans } = props;
  const byId = new Map(clusters.map(one => [idOf(one), one]));
  const rows = useRows([...byId.keys()], {
    open: id => {
      const cluster = byId.get(id);
      if (cluster) {
        actions.openCluster(cluster);
      }
    }
  });
  return (
    <>
      <ul
        className="jp-HyperPod-Rows"
        aria-label={trans.__('Clusters')}
        onKeyDown={rows.onKeyDown}
      >
        {[...byId].map(([id, cluster]) => (
          <ClusterRow
            key={id}
            cluster={cluster}
            isLoading={isLoading}
            row={rows.rowProps(id)}
            entries={() => clusterEntries(cluster, actions, trans)}
            actions={actions}
            trans={trans}
          />
        ))}
      </ul>
      {isAlone && clusters.every(one => one.orchestrator === 'local') && (
        <p className="jp-HyperPod-Message">
          {trans.__('Only this machine is configured.')}{' '}
          <button
            type="button"
            className="jp-HyperPod-link"
            onClick={() => actions.openDoctor()}
          >
            {trans.__('Check what a HyperPod cluster needs')}
          </button>
        </p>
      )}
    </>
  );
}

function idOf({ configured, name }: ICluster): string {
  return configured ? name : `aws ${name}`;
}

/** What is to be said of AWS: why its answer is old or missing, and that there is more or nothing. */
function AwsLines(props: {
  store: ClusterStore;
  problem: IErrorBody | null;
  isRegionChosen: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { isRegionChosen, problem, store, trans } = props;
  const { aws } = store;
  const left = aws ? aws.total - aws.clusters.length : 0;
  const isEmpty =
    Boolean(aws?.as_of) &&
    !aws?.loading &&
    !aws?.clusters.some(one => one.hyperpod);
  return (
    <>
      {problem && (
        <p
          className="jp-HyperPod-Message jp-mod-stale"
          role="status"
          title={problem.hint ?? undefined}
        >
          {aws?.as_of
            ? trans.__(
                'AWS, updated %1: %2',
                agoText(aws.as_of, trans),
                errorText(problem, trans)
              )
            : trans.__('AWS: %1', errorText(problem, trans))}
        </p>
      )}
      {isEmpty && isRegionChosen && !problem && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Your account has no HyperPod clusters in this region.')}
        </p>
      )}
      {left > 0 && (
        <button
          type="button"
          className="jp-HyperPod-link jp-HyperPod-PanelSection-more"
          onClick={() => store.more()}
        >
          {trans._n('%1 more cluster', '%1 more clusters', left)}
        </button>
      )}
    </>
  );
}
