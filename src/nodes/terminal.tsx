import { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  MainAreaWidget,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { Terminal } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { INodeTerminal } from './types';

/** JupyterLab's own command; it answers with the terminal, and is missing where the server has none. */
const NEW_TERMINAL = 'terminal:create-new';

/** Milliseconds after which a shell is taken for ready though it printed nothing. */
const PATIENCE = 3000;

/** How long a short word of thanks stays. */
const BRIEFLY = 3000;

/** What of a terminal's widget is used here. */
type TerminalContent = Widget & {
  readonly session: Terminal.ITerminalConnection;
};

/**
 * Open a terminal of JupyterLab with a session on a node; where that can't be had, show the command and what is missing.
 *
 * @returns whether it was opened
 */
export async function openNodeTerminal(
  app: JupyterFrontEnd,
  terminal: INodeTerminal,
  trans: TranslationBundle
): Promise<boolean> {
  const hasTerminals =
    app.serviceManager.terminals.isAvailable() &&
    app.commands.hasCommand(NEW_TERMINAL);
  if (!hasTerminals || terminal.missing.length > 0) {
    await showCommand(terminal, hasTerminals, trans);
    return false;
  }
  const opened: unknown = await app.commands.execute(NEW_TERMINAL);
  if (!(opened instanceof MainAreaWidget)) {
    // Another application than JupyterLab, which opens it elsewhere.
    await showCommand(terminal, hasTerminals, trans);
    return false;
  }
  const { session } = opened.content as TerminalContent;
  await hasPrinted(session);
  // The server gives no line with a word that any shell, or the terminal itself, could take for something else.
  session.send({ type: 'stdin', content: [`${terminal.line}\r`] });
  return true;
}

/** Wait for the shell's prompt: what is typed before it would be shown twice. */
function hasPrinted(session: Terminal.ITerminalConnection): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer);
      session.messageReceived.disconnect(onMessage);
      resolve();
    };
    const onMessage = (_: unknown, message: Terminal.IMessage) => {
      if (message.type === 'stdout') {
        done();
      }
    };
    const timer = setTimeout(done, PATIENCE);
    session.messageReceived.connect(onMessage);
  });
}

async function showCommand(
  terminal: INodeTerminal,
  hasTerminals: boolean,
  trans: TranslationBundle
): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Terminal on %1', terminal.instance),
    body: (
      <div className="jp-HyperPod-NodeTerminal">
        {!hasTerminals && (
          <p>
            {trans.__('Terminals are not available on this Jupyter server.')}
          </p>
        )}
        {terminal.missing.length > 0 && (
          <>
            <p>
              {trans.__(
                'To open a terminal here, install these tools on the Jupyter server:'
              )}
            </p>
            <ul>
              {terminal.missing.map(({ name, what }) => (
                <li key={name}>
                  <code>{name}</code>: {what}
                </li>
              ))}
            </ul>
          </>
        )}
        <p>
          {trans.__('Run this in a terminal where these tools are installed:')}
        </p>
        <pre tabIndex={0}>{terminal.line}</pre>
      </div>
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Close') }),
      Dialog.okButton({ label: trans.__('Copy command') })
    ]
  });
  if (answer.button.accept) {
    Clipboard.copyToSystem(terminal.line);
    Notification.info(trans.__('Copied.'), { autoClose: BRIEFLY });
  }
}
