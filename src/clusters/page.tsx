import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { IClusterClient } from './client';
import { jobColumns, nodeColumns, queueColumns } from './columns';
import { ServerTable } from './serverTable';
import { ITableQuery, TableKind } from './types';

/**
 * A cluster in the main area: its nodes, its queues, and everybody's jobs.
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
    return <ClusterTables {...this._options} />;
  }

  private readonly _options: ClusterPage.IOptions;
}

export namespace ClusterPage {
  export interface IOptions {
    cluster: string;
    client: IClusterClient;
    openRun: (runId: string) => void;
    trans: TranslationBundle;
  }
}

function ClusterTables(options: ClusterPage.IOptions): JSX.Element {
  const { client, cluster, openRun, trans } = options;
  const [loads] = React.useState(() => {
    const loader = (kind: TableKind) => (query: ITableQuery) =>
      client.table(cluster, kind, query);
    return {
      nodes: loader('nodes'),
      queues: loader('queues'),
      jobs: loader('jobs')
    };
  });
  return (
    <>
      <h1>{cluster}</h1>
      <ServerTable
        label={trans.__('Queues')}
        columns={queueColumns(trans)}
        load={loads.queues}
        empty={trans.__('This cluster has no queues.')}
        trans={trans}
      />
      <ServerTable
        label={trans.__('Jobs of all users')}
        columns={jobColumns(trans, openRun)}
        load={loads.jobs}
        empty={trans.__(
          'Nothing waits or runs here: a run would start at once.'
        )}
        trans={trans}
      />
      <ServerTable
        label={trans.__('Nodes')}
        columns={nodeColumns(trans)}
        load={loads.nodes}
        empty={trans.__('This cluster has no nodes.')}
        trans={trans}
      />
    </>
  );
}
