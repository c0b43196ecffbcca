import { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { Tabs } from '../components/tabs';
import { useLoaded } from '../components/useLoaded';
import { WatchingPage } from '../components/watchingWidget';
import type { IEventClient } from '../events/client';
import { EventsTable } from '../events/table';
import { hasEvents } from '../events/types';
import { GovernanceTab } from '../governance/tab';
import type { IMetricsClient } from '../metrics/client';
import { AwsDetail } from './awsDetail';
import type { IClusterClient } from './client';
import { ClusterHead } from './head';
import { JobsTab } from './jobsTab';
import { INodesTable, NodesTable } from './nodesTable';
import { OverviewTab } from './overviewTab';
import { queueColumns } from './queueColumns';
import { LoadedTable } from './serverTable';
import type { ClusterStore } from './store';
import { ICluster } from './types';
import { ClusterView } from './view';

const TABS = [
  'overview',
  'jobs',
  'queues',
  'nodes',
  'metrics',
  'events',
  'settings'
] as const;

/** A tab of a cluster's page. */
export type ClusterTab = (typeof TABS)[number];

/** The tab with a name; undefined for none. */
export function tabNamed(name: unknown): ClusterTab | undefined {
  return TABS.find(tab => tab === name);
}

/** Clusters that may have task governance. */
const WITH_GOVERNANCE = 'kubernetes';

/**
 * A cluster in the main area: what its scheduler and AWS know of it. Nothing is asked for while it is hidden.
 */
export class ClusterPage extends WatchingPage<ClusterView> {
  constructor(options: ClusterPage.IOptions) {
    const { client, cluster, store } = options;
    super(new ClusterView(client, cluster, store), cluster);
    this.cluster = cluster;
    this._options = options;
    this._tab = options.tab ?? 'overview';
  }

  readonly cluster: string;

  /** The tab in view. */
  get tab(): ClusterTab {
    return this._tab;
  }

  /** Another tab is in view. */
  get tabChanged(): ISignal<this, void> {
    return this._tabChanged;
  }

  protected override render(): JSX.Element {
    const { newRun, trans } = this._options;
    const { detail, row } = this.watched;
    const tabs = tabsOf(row);
    const labels = tabLabels(trans);
    const head = (
      <ClusterHead view={this.watched} newRun={newRun} trans={trans} />
    );
    return row === null && detail.error?.isMissing ? (
      <>
        {head}
        <ErrorMessage error={detail.error} trans={trans} />
      </>
    ) : (
      <>
        {head}
        <Tabs
          label={trans.__('Cluster views')}
          tabs={tabs.map(name => ({ name, label: labels[name] }))}
          first={this._tab}
          onChoose={tab => {
            this._tab = tab;
            this._tabChanged.emit();
          }}
        >
          {(tab, choose) => (
            <TabContent
              {...this._options}
              view={this.watched}
              isShown={this._isShown}
              tab={tab}
              openNode={name => {
                this._node = name;
                choose('nodes');
              }}
              node={this._node}
            />
          )}
        </Tabs>
      </>
    );
  }

  private readonly _isShown = () => this.isVisible && !document.hidden;
  private readonly _options: ClusterPage.IOptions;
  private readonly _tabChanged = new Signal<this, void>(this);
  private _tab: ClusterTab;
  private _node: string | null = null;
}

export namespace ClusterPage {
  export interface IOptions extends Omit<
    INodesTable,
    'view' | 'isShown' | 'node'
  > {
    client: IClusterClient;
    store: ClusterStore;
    /** Requests on the cluster's events. */
    eventClient: IEventClient;
    metricsClient: IMetricsClient;
    /** The first tab in view; default: the overview. */
    tab?: ClusterTab;
    newRun: () => void;
    /** Write the cluster into the configuration, once the user has seen what is written. */
    connect: (cluster: ICluster) => void;
    openRun: (runId: string) => void;
  }
}

/** The tabs that can work. */
function tabsOf(row: ICluster | null): readonly ClusterTab[] {
  const hyperpod = row?.hyperpod ?? null;
  const scheduled = row === null || row.configured;
  // The overview of a cluster that is not configured has AWS' settings.
  const settings =
    hyperpod && (scheduled || row?.orchestrator === WITH_GOVERNANCE);
  return [
    'overview',
    ...(scheduled ? (['jobs', 'queues'] as const) : []),
    'nodes',
    ...(hyperpod ? (['metrics'] as const) : []),
    ...(hasEvents(row) ? (['events'] as const) : []),
    ...(settings ? (['settings'] as const) : [])
  ];
}

function tabLabels(
  trans: TranslationBundle
): Readonly<Record<ClusterTab, string>> {
  return {
    overview: trans.__('Overview'),
    jobs: trans.__('Jobs'),
    queues: trans.__('Queues'),
    nodes: trans.__('Nodes'),
    metrics: trans.__('Metrics'),
    events: trans.__('Events'),
    settings: trans.__('Settings')
  };
}

type IProps = ClusterPage.IOptions & {
  view: ClusterView;
  isShown: () => boolean;
  tab: ClusterTab;
  openNode: (name: string) => void;
  node: string | null;
};

/** What is in a tab. Only that is asked for, and is in the page. */
function TabContent(props: IProps): JSX.Element {
  const { client, cluster, tab, trans, view } = props;
  const isConfigured = view.row?.configured ?? true;
  switch (tab) {
    case 'jobs':
      return <JobsTab {...props} />;
    case 'queues':
      return (
        <LoadedTable
          kind="queues"
          client={client}
          cluster={cluster}
          view={view}
          label={trans.__('Queues')}
          columns={queueColumns(trans)}
          empty={trans.__('This cluster has no queues.')}
          trans={trans}
        />
      );
    case 'nodes':
      return <NodesTable {...props} />;
    case 'metrics':
      return <Metrics {...props} />;
    case 'events':
      return <EventsTable {...props} client={props.eventClient} />;
    case 'settings':
      return (
        <>
          {isConfigured && <AwsDetail {...props} />}
          {view.row?.orchestrator === WITH_GOVERNANCE && (
            <>
              <h2>{trans.__('Task governance')}</h2>
              <GovernanceTab {...props} />
            </>
          )}
        </>
      );
    default:
      return isConfigured ? (
        <OverviewTab {...props} />
      ) : (
        <AwsDetail {...props} />
      );
  }
}

const loadMetrics = () => import('../metrics/page');

/** What shows metrics is a page of its own too, so it is loaded by itself. */
function Metrics(props: IProps): JSX.Element {
  const { metricsClient, trans } = props;
  const { error, retry, value } = useLoaded(loadMetrics);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  return value ? (
    <value.MetricsTab {...props} client={metricsClient} />
  ) : (
    <p role="status">{trans.__('Loading…')}</p>
  );
}
