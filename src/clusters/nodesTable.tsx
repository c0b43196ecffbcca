import { TranslationBundle } from '@jupyterlab/translation';
import {
  LabIcon,
  terminalIcon,
  textEditorIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { useAnew } from '../components/useAnew';
import { NodeActionBar } from '../nodes/actionBar';
import type { IEventClient } from '../events/client';
import type { INodeClient } from '../nodes/client';
import type { INodeOpeners } from '../nodes/openers';
import { useNodeActions } from '../nodes/useNodeActions';
import { IClusterClient } from './client';
import { nodeColumns } from './nodeColumns';
import { NodeDrawer } from './nodeDrawer';
import { IColumn, ServerTable } from './serverTable';
import { ITableQuery, TableRow, valueText } from './types';
import type { ClusterView } from './view';

/**
 * What a table of nodes needs.
 */
export interface INodesTable extends INodeOpeners {
  cluster: string;
  client: IClusterClient;
  view: ClusterView;
  /** Requests on the cluster's events. */
  eventClient: IEventClient;
  /** Requests that do something to nodes. */
  nodeClient: INodeClient;
  openRun: (runId: string) => void;
  isShown: () => boolean;
  /** A node whose details are in view to begin with. */
  node: string | null;
  trans: TranslationBundle;
}

/**
 * The nodes of a cluster, as its scheduler and AWS know them: what comes first at once, the others as they come. Some can be chosen to do something to
 * them, and each that has an instance has its terminal and its logs. The name of a node shows all about it.
 */
export function NodesTable(props: INodesTable): JSX.Element {
  const { client, cluster, isShown, nodeClient, trans, view } = props;
  const [node, setNode] = React.useState(props.node);
  const root = React.useRef<HTMLDivElement>(null);
  /** The node whose name gets the focus once the table has it. */
  const awaited = React.useRef<string | null>(null);
  const close = () => {
    // The focus goes back to the node's name.
    const name = root.current?.querySelector<HTMLElement>(
      '.jp-HyperPod-Table-name[aria-expanded=true]'
    );
    name?.focus();
    awaited.current = name ? null : node;
    setNode(null);
  };
  const actions = useNodeActions({ client: nodeClient, cluster, trans });
  const load = useAnew(
    () => (query: ITableQuery) => client.table(cluster, 'nodes', query),
    actions.turn
  );
  const [name, ...others] = nodeColumns(trans);
  const named = {
    ...name,
    render: (row: TableRow) => (
      <button
        type="button"
        className="jp-HyperPod-link jp-HyperPod-Table-name"
        aria-expanded={row.name === node}
        ref={button => {
          if (button && row.name === awaited.current) {
            awaited.current = null;
            if (document.activeElement === document.body) {
              button.focus();
            }
          }
        }}
        onClick={() => setNode(valueText(row.name))}
      >
        {valueText(row.name)}
      </button>
    )
  };
  return (
    <div className="jp-HyperPod-WithDrawer" ref={root}>
      <ServerTable
        load={load}
        label={trans.__('Nodes')}
        columns={[named, ...buttonColumns(props), ...others]}
        empty={trans.__('This cluster has no nodes.')}
        isShown={isShown}
        view={view}
        selection={actions.abilities.length > 0 ? actions.selection : undefined}
        trans={trans}
      >
        <NodeActionBar actions={actions} trans={trans} />
      </ServerTable>
      {node !== null && (
        <NodeDrawer
          {...props}
          key={node}
          node={node}
          columns={others}
          actions={actions}
          close={close}
        />
      )}
    </div>
  );
}

/** What can be opened of an instance. */
function buttonColumns({
  openLogs,
  openTerminal,
  trans
}: Pick<
  INodesTable,
  'openLogs' | 'openTerminal' | 'trans'
>): readonly IColumn[] {
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
