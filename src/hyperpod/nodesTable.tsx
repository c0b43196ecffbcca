import { TranslationBundle } from '@jupyterlab/translation';
import {
  LabIcon,
  terminalIcon,
  textEditorIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { IColumn, ServerTable } from '../clusters/serverTable';
import { ITableQuery, TableRow, valueText } from '../clusters/types';
import { useAnew } from '../components/useAnew';
import { NodeActionBar } from '../nodes/actionBar';
import type { INodeClient } from '../nodes/client';
import { useNodeActions } from '../nodes/useNodeActions';
import type { IHyperpodClient } from './client';
import { hyperpodNodeColumns } from './nodeColumns';

/** State of a node that AWS does not list. */
const NOT_LISTED = 'not-listed';

/**
 * The nodes of a HyperPod cluster, those of AWS' first page at once, the others as they come. Some can be chosen to do something to them, and each has its terminal and its logs.
 */
export function HyperpodNodes(props: {
  cluster: string;
  client: IHyperpodClient;
  nodeClient: INodeClient;
  /** Open a terminal on an instance. */
  openTerminal: (instance: string) => void;
  /** Open the logs of an instance. */
  openLogs: (instance: string) => void;
  isShown: () => boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, cluster, isShown, nodeClient, trans } = props;
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
      columns={[name, ...buttonColumns(props), ...others]}
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

/** What can be opened of an instance. */
function buttonColumns(props: {
  openTerminal: (instance: string) => void;
  openLogs: (instance: string) => void;
  trans: TranslationBundle;
}): readonly IColumn[] {
  const { openLogs, openTerminal, trans } = props;
  return [
    {
      name: 'terminal',
      label: trans.__('Terminal'),
      unsorted: true,
      render: row => (
        <OpenButton
          row={row}
          icon={terminalIcon}
          open={openTerminal}
          label={instance => trans.__('Open a terminal on %1', instance)}
        />
      )
    },
    {
      name: 'logs',
      label: trans.__('Logs'),
      unsorted: true,
      render: row => (
        <OpenButton
          row={row}
          icon={textEditorIcon}
          open={openLogs}
          label={instance => trans.__('Show the logs of %1', instance)}
        />
      )
    }
  ];
}

function OpenButton(props: {
  row: TableRow;
  icon: LabIcon;
  open: (instance: string) => void;
  label: (instance: string) => string;
}): JSX.Element | null {
  const { icon: Icon, open, row } = props;
  const instance = valueText(row.name);
  const label = props.label(instance);
  return row.state === NOT_LISTED ? null : (
    <button
      type="button"
      className="jp-HyperPod-button jp-HyperPod-Table-icon"
      title={label}
      aria-label={label}
      onClick={() => open(instance)}
    >
      <Icon.react tag="span" width="16px" height="16px" />
    </button>
  );
}
