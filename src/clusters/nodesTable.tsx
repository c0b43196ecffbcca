import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useAnew } from '../components/useAnew';
import { NodeActionBar } from '../nodes/actionBar';
import type { INodeClient } from '../nodes/client';
import { useNodeActions } from '../nodes/useNodeActions';
import { IClusterClient } from './client';
import { nodeColumns } from './nodeColumns';
import { ServerTable } from './serverTable';
import { ITableQuery } from './types';

/** What is in the way where a cluster is no HyperPod cluster, or has no such thing at all: nobody misses it there. */
const NOT_MISSED = ['no_hyperpod_cluster', 'unsupported'];

/**
 * The nodes of a cluster of the configuration, of which some can be chosen to do something to them.
 */
export function NodesTable(props: {
  cluster: string;
  client: IClusterClient;
  nodeClient: INodeClient;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, cluster, nodeClient, trans } = props;
  const actions = useNodeActions({
    client: nodeClient,
    whose: { kind: 'clusters', cluster },
    notMissed: NOT_MISSED,
    trans
  });
  const load = useAnew(
    () => (query: ITableQuery) => client.table(cluster, 'nodes', query),
    actions.turn
  );
  return (
    <ServerTable
      load={load}
      label={trans.__('Nodes')}
      columns={nodeColumns(trans)}
      empty={trans.__('This cluster has no nodes.')}
      selection={actions.abilities.length > 0 ? actions.selection : undefined}
      trans={trans}
    >
      <NodeActionBar actions={actions} trans={trans} />
    </ServerTable>
  );
}
