import { TranslationBundle } from '@jupyterlab/translation';
import {
  LabIcon,
  terminalIcon,
  textEditorIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { useAnew } from '../components/useAnew';
import { NodeActionBar } from '../nodes/actionBar';
import type { INodeClient } from '../nodes/client';
import type { INodeOpeners } from '../nodes/openers';
import { useNodeActions } from '../nodes/useNodeActions';
import { IClusterClient } from './client';
import { nodeColumns } from './nodeColumns';
import { IColumn, ServerTable } from './serverTable';
import { ITableQuery, TableRow, valueText } from './types';

/**
 * What a table of nodes needs.
 */
export interface INodesTable extends INodeOpeners {
  cluster: string;
  client: IClusterClient;
  /** Requests that do something to nodes. */
  nodeClient: INodeClient;
  trans: TranslationBundle;
}

/**
 * The nodes of a cluster, as its scheduler and AWS know them: what comes first at once, the others as they come. Some can be chosen to do something to
 * them, and each that has an instance has its terminal and its logs.
 */
export function NodesTable(
  props: INodesTable & { isShown: () => boolean }
): JSX.Element {
  const { client, cluster, isShown, nodeClient, trans } = props;
  const actions = useNodeActions({ client: nodeClient, cluster, trans });
  const load = useAnew(
    () => (query: ITableQuery) => client.table(cluster, 'nodes', query),
    actions.turn
  );
  const [name, ...others] = nodeColumns(trans);
  return (
    <ServerTable
      load={load}
      label={trans.__('Nodes')}
      columns={[name, ...buttonColumns(props), ...others]}
      empty={trans.__('This cluster has no nodes.')}
      isShown={isShown}
      selection={actions.abilities.length > 0 ? actions.selection : undefined}
      trans={trans}
    >
      <NodeActionBar actions={actions} trans={trans} />
    </ServerTable>
  );
}

/** What can be opened of an instance. */
function buttonColumns({
  openLogs,
  openTerminal,
  trans
}: INodesTable): readonly IColumn[] {
  return [
    {
      name: 'terminal',
      label: trans.__('Terminal'),
      unsorted: true,
      optional: true,
      render: row =>
        openButton(row, terminalIcon, openTerminal, node =>
          trans.__('Open a terminal on %1', node)
        )
    },
    {
      name: 'logs',
      label: trans.__('Logs'),
      unsorted: true,
      optional: true,
      render: row =>
        openButton(row, textEditorIcon, openLogs, node =>
          trans.__('Show the logs of %1', node)
        )
    }
  ];
}

/** A button for the instance of a node; null where it has none. */
function openButton(
  row: TableRow,
  icon: LabIcon,
  open: (instance: string) => void,
  labelOf: (node: string) => string
): React.ReactNode {
  const { instance } = row;
  const label = labelOf(valueText(row.name));
  return typeof instance === 'string' ? (
    <button
      type="button"
      className="jp-HyperPod-button jp-HyperPod-Table-icon"
      title={label}
      aria-label={label}
      onClick={() => open(instance)}
    >
      <icon.react tag="span" width="16px" height="16px" />
    </button>
  ) : null;
}
