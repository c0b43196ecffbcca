import { TranslationBundle } from '@jupyterlab/translation';
import { terminalIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IColumn, ServerTable } from '../clusters/serverTable';
import { ITableQuery, valueText } from '../clusters/types';
import { useAnew } from '../components/useAnew';
import { NodeActionBar } from '../nodes/actionBar';
import type { INodeClient } from '../nodes/client';
import { useNodeActions } from '../nodes/useNodeActions';
import type { IHyperpodClient } from './client';
import { hyperpodNodeColumns } from './nodeColumns';

/** State of a node that AWS does not list. */
const NOT_LISTED = 'not-listed';

/**
 * The nodes of a HyperPod cluster, those of AWS' first page at once, the others as they come. Some can be chosen to do something to them, and each has its terminal.
 */
export function HyperpodNodes(props: {
  cluster: string;
  client: IHyperpodClient;
  nodeClient: INodeClient;
  /** Open a terminal on an instance. */
  openTerminal: (instance: string) => void;
  isShown: () => boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, cluster, isShown, nodeClient, openTerminal, trans } = props;
  const actions = useNodeActions({
    client: nodeClient,
    whose: { kind: 'hyperpod', cluster },
    trans
  });
  const load = useAnew(
    () => (query: ITableQuery) => client.nodes(cluster, query),
    actions.turn
  );
  const [name, ...others] = hyperpodNodeColumns(trans);
  return (
    <ServerTable
      load={load}
      label={trans.__('Nodes')}
      columns={[name, terminalColumn(openTerminal, trans), ...others]}
      sort="instance_group"
      empty={trans.__('This cluster has no nodes.')}
      isShown={isShown}
      selection={actions.abilities.length > 0 ? actions.selection : undefined}
      trans={trans}
    >
      <NodeActionBar actions={actions} trans={trans} />
    </ServerTable>
  );
}

function terminalColumn(
  open: (instance: string) => void,
  trans: TranslationBundle
): IColumn {
  return {
    name: 'terminal',
    label: trans.__('Terminal'),
    unsorted: true,
    render: row => {
      const instance = valueText(row.name);
      const label = trans.__('Open a terminal on %1', instance);
      return row.state === NOT_LISTED ? null : (
        <button
          type="button"
          className="jp-HyperPod-button jp-HyperPod-Table-icon"
          title={label}
          aria-label={label}
          onClick={() => open(instance)}
        >
          <terminalIcon.react tag="span" width="16px" height="16px" />
        </button>
      );
    }
  };
}
