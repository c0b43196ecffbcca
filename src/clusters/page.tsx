import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { ISignal } from '@lumino/signaling';
import * as React from 'react';

import { Tabs } from '../components/tabs';
import type { IRunChange } from '../runs/model';
import { CallsNote } from './callsNote';
import { endedColumns, runColumns } from './jobColumns';
import { JobsTable } from './jobsTable';
import { INodesTable, NodesTable } from './nodesTable';
import { OverviewTab } from './overviewTab';
import { queueColumns } from './queueColumns';
import { ServerTable } from './serverTable';
import { ITablePage, ITableQuery, TableKind } from './types';

const TABS = ['overview', 'queues', 'jobs', 'nodes', 'finished'] as const;
type Tab = (typeof TABS)[number];

/**
 * A cluster in the main area: its nodes, its queues, everybody's jobs, and what ended.
 */
export class ClusterPage extends ReactWidget {
  constructor(options: ClusterPage.IOptions) {
    super();
    this.addClass('jp-HyperPod-ClusterPage');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', options.cluster);
    this.cluster = options.cluster;
    this._options = options;
  }

  readonly cluster: string;

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }

  protected override render(): JSX.Element {
    return <ClusterTables {...this._options} isShown={this._isShown} />;
  }

  private readonly _isShown = () => this.isVisible && !document.hidden;
  private readonly _options: ClusterPage.IOptions;
}

export namespace ClusterPage {
  export interface IOptions extends INodesTable {
    openRun: (runId: string) => void;
    /** A run came into another state. */
    runChanged: ISignal<unknown, IRunChange>;
  }
}

type IProps = ClusterPage.IOptions & { isShown: () => boolean };

function ClusterTables(props: IProps): JSX.Element {
  const { client, cluster, trans } = props;
  const labels: Readonly<Record<Tab, string>> = {
    overview: trans.__('Overview'),
    queues: trans.__('Queues'),
    jobs: trans.__('Jobs'),
    nodes: trans.__('Nodes'),
    finished: trans.__('Finished')
  };
  return (
    <>
      <h1>{cluster}</h1>
      <CallsNote client={client} cluster={cluster} trans={trans} />
      <Tabs
        label={trans.__('Cluster views')}
        tabs={TABS.map(name => ({ name, label: labels[name] }))}
      >
        {(tab, choose) => (
          <TabTables {...props} tab={tab} openNodes={() => choose('nodes')} />
        )}
      </Tabs>
    </>
  );
}

/** What is in a tab. Only that is asked for, and is in the page. */
function TabTables(
  props: IProps & { tab: Tab; openNodes: () => void }
): JSX.Element {
  const { client, cluster, tab, trans } = props;
  const [load] = React.useState(
    () => (kind: TableKind) => (query: ITableQuery) =>
      client.table(cluster, kind, query)
  );
  switch (tab) {
    case 'overview':
      return <OverviewTab {...props} />;
    case 'jobs':
      return <JobsTable {...props} />;
    case 'nodes':
      return <NodesTable {...props} />;
    case 'finished':
      return <FinishedTables {...props} load={load} />;
    default:
      return (
        <LoadedTable
          kind="queues"
          load={load}
          label={trans.__('Queues')}
          columns={queueColumns(trans)}
          empty={trans.__('This cluster has no queues.')}
          trans={trans}
        />
      );
  }
}

type Loader = (kind: TableKind) => (query: ITableQuery) => Promise<ITablePage>;

/** The user's own runs that ended, from the storage partition, and everybody's jobs that ended, as long as the cluster remembers them. */
function FinishedTables(
  props: ClusterPage.IOptions & { load: Loader }
): JSX.Element {
  const { load, openRun, trans } = props;
  return (
    <>
      <LoadedTable
        kind="runs"
        load={load}
        label={trans.__('My finished runs')}
        columns={runColumns(trans, openRun)}
        empty={trans.__('You have no finished runs on this cluster.')}
        fixed
        trans={trans}
      />
      <LoadedTable
        kind="ended"
        load={load}
        label={trans.__('Recently finished jobs (all users)')}
        columns={endedColumns(trans, openRun)}
        sort="-ends_at"
        empty={trans.__('The cluster has no record of finished jobs.')}
        trans={trans}
      />
    </>
  );
}

/** A table of one kind; its loader stays the same as long as it is shown. */
function LoadedTable(
  props: Omit<React.ComponentProps<typeof ServerTable>, 'load'> & {
    kind: TableKind;
    load: Loader;
  }
): JSX.Element {
  const { kind, load, ...rest } = props;
  const rows = React.useMemo(() => load(kind), [kind, load]);
  return <ServerTable {...rest} load={rows} />;
}
