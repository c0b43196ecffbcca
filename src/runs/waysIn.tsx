import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import {
  INodeServices,
  IRunAccess,
  IShell,
  portOf,
  USUAL_PORT
} from './access';
import { IRun } from './types';

/**
 * What leads into a run's nodes.
 */
export interface IWaysInProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Whether this run's cluster lets anybody in at all. */
  readonly isOffered: boolean;
  /** What the launchers saw on the nodes. */
  readonly services: readonly INodeServices[];
  /** Asks the cluster. */
  readonly load: () => Promise<IRunAccess>;
  /** Opens a port of a node in another tab of the browser. */
  readonly openPort: (nodeRank: number, port: number) => void;
  readonly copy: (command: string) => void;
}

/**
 * Ports of a run's nodes in the browser, and commands that open a shell there, while it runs. The cluster is asked once this is opened.
 */
export function WaysIn(props: IWaysInProps): JSX.Element | null {
  const { isOffered, run, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  if (!isOffered || run.state !== 'running') {
    return null;
  }
  return (
    <>
      <Services {...props} />
      <details
        className="jp-HyperPod-Children jp-HyperPod-WaysIn"
        onToggle={event => setOpen(event.currentTarget.open)}
      >
        <summary>{trans.__('Ports and shells')}</summary>
        {isOpen && <Ways {...props} />}
      </details>
    </>
  );
}

/** A button for each port on which a program listens, and for each folder of TensorBoard events. */
function Services(props: IWaysInProps): JSX.Element | null {
  const { copy, openPort, services, trans } = props;
  const ports = services.flatMap(({ node_rank: nodeRank, ports }) =>
    ports.map(port => ({ nodeRank, port }))
  );
  const folders = new Set(services.flatMap(one => one.log_folders));
  if (ports.length === 0 && folders.size === 0) {
    return null;
  }
  const hasNodes = ports.some(one => one.nodeRank > 0);
  return (
    <div className="jp-HyperPod-WaysIn-services">
      {ports.map(({ nodeRank, port }) => {
        const name =
          port === USUAL_PORT
            ? trans.__('Open TensorBoard')
            : trans.__('Open port %1', port);
        return (
          <button
            key={`${nodeRank}:${port}`}
            type="button"
            className="jp-HyperPod-button"
            title={trans.__('Open port %1 in a new browser tab', port)}
            onClick={() => openPort(nodeRank, port)}
          >
            {hasNodes ? trans.__('%1 (node %2)', name, nodeRank) : name}
          </button>
        );
      })}
      {Array.from(folders, folder => (
        <button
          key={folder}
          type="button"
          className="jp-HyperPod-button"
          title={trans.__('Copy a command that shows %1', folder)}
          onClick={() => copy(`tensorboard --logdir ${quoted(folder)}`)}
        >
          {trans.__('Copy TensorBoard command')}
        </button>
      ))}
    </div>
  );
}

/** A word of a shell's command. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text)
    ? text
    : `'${text.replace(/'/g, `'"'"'`)}'`;
}

function Ways(props: IWaysInProps): JSX.Element {
  const { load, openPort, trans } = props;
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  if (value === null) {
    return <p role="status">{trans.__('Loading from the cluster…')}</p>;
  }
  return (
    <>
      {value.reason !== null && <p role="status">{value.reason}</p>}
      {value.ports && (
        <PortForm shells={value.shells} openPort={openPort} trans={trans} />
      )}
      {value.shells.length > 0 && (
        <Shells shells={value.shells} copy={props.copy} trans={trans} />
      )}
      <button type="button" className="jp-HyperPod-link" onClick={retry}>
        {trans.__('Refresh')}
      </button>
    </>
  );
}

/** Which port, and of which node when there are several. */
function PortForm(props: {
  shells: readonly IShell[];
  openPort: (nodeRank: number, port: number) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { openPort, shells, trans } = props;
  const [text, setText] = React.useState(String(USUAL_PORT));
  const [nodeRank, setNodeRank] = React.useState(0);
  const port = portOf(text);
  return (
    <form
      className="jp-HyperPod-WaysIn-port"
      onSubmit={event => {
        event.preventDefault();
        if (port !== null) {
          openPort(nodeRank, port);
        }
      }}
    >
      <label className="jp-HyperPod-field">
        {trans.__('Port')}
        <input
          className="jp-HyperPod-input"
          inputMode="numeric"
          value={text}
          title={trans.__('TensorBoard uses port 6006')}
          aria-invalid={port === null}
          onChange={event => setText(event.target.value)}
        />
      </label>
      {shells.length > 1 && (
        <NodeField
          shells={shells}
          value={nodeRank}
          choose={setNodeRank}
          trans={trans}
        />
      )}
      <button
        type="submit"
        className="jp-HyperPod-button"
        title={trans.__('Open in a new browser tab')}
        aria-disabled={port === null}
      >
        {trans.__('Open port')}
      </button>
    </form>
  );
}

function NodeField(props: {
  shells: readonly IShell[];
  value: number;
  choose: (nodeRank: number) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { choose, shells, trans, value } = props;
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Node')}
      <select
        className="jp-HyperPod-select"
        value={value}
        onChange={event => choose(Number(event.target.value))}
      >
        {shells.map(shell => (
          <option key={shell.node_rank} value={shell.node_rank}>
            {nodeText(shell)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A command for each node. */
function Shells(props: {
  shells: readonly IShell[];
  copy: (command: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { copy, shells, trans } = props;
  return (
    <ul
      className="jp-HyperPod-WaysIn-shells"
      aria-label={trans.__('Shell commands')}
    >
      {shells.map(shell => (
        <li key={shell.node_rank}>
          <span>{trans.__('Shell on %1', nodeText(shell))}</span>
          <code>{shell.command}</code>
          <button
            type="button"
            className="jp-HyperPod-button"
            aria-label={trans.__(
              'Copy the command for a shell on %1',
              nodeText(shell)
            )}
            onClick={() => copy(shell.command)}
          >
            {trans.__('Copy')}
          </button>
        </li>
      ))}
    </ul>
  );
}

function nodeText({ node, node_rank: nodeRank }: IShell): string {
  return node === null ? String(nodeRank) : `${nodeRank} (${node})`;
}
