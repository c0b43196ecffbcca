import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { IRunAccess, IShell } from './access';
import { IRun } from './types';

/**
 * Commands for a run's nodes and their folders.
 */
export interface IRunShellsProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Whether this run's cluster has shells. */
  readonly isOffered: boolean;
  /** Where its ranks write TensorBoard events. */
  readonly logFolders: readonly string[];
  /** Asks the cluster. */
  readonly load: () => Promise<IRunAccess>;
  readonly copy: (command: string) => void;
}

/**
 * Commands that show TensorBoard of a running run and open a shell on its nodes. The cluster is asked once this is opened.
 */
export function RunShells(props: IRunShellsProps): JSX.Element | null {
  const { copy, isOffered, logFolders, run, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  if (run.state !== 'running') {
    return null;
  }
  return (
    <>
      <TensorBoards folders={logFolders} copy={copy} trans={trans} />
      {isOffered && (
        <details
          className="jp-HyperPod-Children jp-HyperPod-Shells"
          onToggle={event => setOpen(event.currentTarget.open)}
        >
          <summary>{trans.__('Shells')}</summary>
          {isOpen && <LoadedShells {...props} />}
        </details>
      )}
    </>
  );
}

/** A button for each folder of TensorBoard events. */
function TensorBoards(props: {
  folders: readonly string[];
  copy: (command: string) => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { copy, folders, trans } = props;
  if (folders.length === 0) {
    return null;
  }
  return (
    <div className="jp-HyperPod-TensorBoards">
      {folders.map(folder => (
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

function LoadedShells(props: IRunShellsProps): JSX.Element {
  const { load, trans } = props;
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
      {value.shells.length > 0 && (
        <Shells shells={value.shells} copy={props.copy} trans={trans} />
      )}
      <button type="button" className="jp-HyperPod-link" onClick={retry}>
        {trans.__('Refresh')}
      </button>
    </>
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
      className="jp-HyperPod-Shells-list"
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
