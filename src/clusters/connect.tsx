import {
  Dialog,
  ReactWidget,
  showDialog,
  showErrorMessage
} from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ApiError, Schema } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import type { IHyperPod } from '../tokens';
import { pathOf } from './client';

type IConnection = Schema<'Connection'>;
type IOptions = Omit<Schema<'ConnectBody'>, 'dry_run' | 'test'>;

/**
 * Show what would be written into the configuration to submit to a HyperPod cluster. Once the user agrees, ask the cluster, and write it if the cluster answers.
 *
 * @returns the cluster's name in the configuration; null: nothing was written
 */
export async function connectCluster(
  { client, clusters, trans }: IHyperPod,
  cluster: string
): Promise<string | null> {
  const name =
    clusters.clusters?.find(one => one.hyperpod?.arn === cluster)?.hyperpod
      ?.name ?? cluster;
  const body = new ConnectBody(
    options =>
      client.post<IConnection>(pathOf(cluster, 'connect'), {
        ...options
      } satisfies Schema<'ConnectBody'>),
    trans
  );
  const answer = await new ConnectDialog(body, name, trans).launch();
  if (!answer.button.accept || answer.value === null) {
    return null;
  }
  await clusters.refresh();
  return answer.value;
}

/** Ask the user, and remove a cluster from the configuration; false: nothing was removed. */
export async function disconnectCluster(
  { client, clusters, trans }: IHyperPod,
  cluster: string
): Promise<boolean> {
  const answer = await showDialog({
    title: trans.__('Disconnect from %1?', cluster),
    body: trans.__(
      'This removes the cluster from your configuration file. Its jobs go on, and its runs stay in the list of runs.'
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Disconnect') })
    ]
  });
  if (!answer.button.accept) {
    return false;
  }
  try {
    await client.post(pathOf(cluster, 'disconnect'), {});
  } catch (reason) {
    const { hint, message } = ApiError.of(reason);
    await showErrorMessage(
      trans.__('Cannot disconnect from %1', cluster),
      hint ? `${message}. ${hint}` : message
    );
    return false;
  }
  await clusters.refresh();
  return true;
}

/** Stays open until the cluster is connected. */
class ConnectDialog extends Dialog<string | null> {
  constructor(
    private readonly _connect: ConnectBody,
    name: string,
    trans: TranslationBundle
  ) {
    super({
      title: trans.__('Connect to %1', name),
      body: _connect,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Connect') })
      ]
    });
  }

  override resolve(index?: number): void {
    if (index === 0) {
      super.resolve(index);
    } else {
      void this._connect.connect().then(isConnected => {
        if (isConnected) {
          super.resolve(index);
        }
      });
    }
  }
}

/** The fields of the dialog, and the table as it would be written. */
class ConnectBody extends ReactWidget {
  constructor(
    private readonly _send: (
      options: Schema<'ConnectBody'>
    ) => Promise<IConnection>,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-HyperPod-Connect');
    void this._preview();
  }

  /** The cluster's name once it is connected. */
  getValue(): string | null {
    return this._connected;
  }

  /** Test the connection and write the table; whether it is written. */
  async connect(): Promise<boolean> {
    if (this._isBusy || this._shown === null) {
      return false;
    }
    this._isBusy = true;
    this._error = null;
    this.update();
    try {
      const { cluster, problem, written } = await this._send({
        ...this._options,
        test: !this._isUntested
      });
      this._problem = problem;
      this._connected = written ? cluster : null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    this._isBusy = false;
    this.update();
    return this._connected !== null;
  }

  protected override render(): JSX.Element {
    const trans = this._trans;
    const shown = this._shown;
    const isSlurm = shown?.config.includes('"slurm"') ?? false;
    const field = isSlurm ? 'login_node' : 'namespace';
    return (
      <>
        {this._error && <ErrorMessage error={this._error} trans={trans} />}
        {shown && (
          <>
            <label>
              {trans.__('Name')}
              <input
                className="jp-HyperPod-input"
                defaultValue={shown.cluster}
                onChange={event => this._set('name', event.target.value)}
              />
            </label>
            <label>
              {isSlurm
                ? trans.__('Login node (leave empty to use Slurm here)')
                : trans.__('Namespace of the runs')}
              <input
                className="jp-HyperPod-input"
                placeholder={EXAMPLES[field]}
                onChange={event => this._set(field, event.target.value)}
              />
            </label>
            {this._problem && (
              <>
                <ErrorMessage error={this._problem} trans={trans} />
                <label className="jp-mod-check">
                  <input
                    type="checkbox"
                    checked={this._isUntested}
                    onChange={event => {
                      this._isUntested = event.target.checked;
                      this.update();
                    }}
                  />
                  {trans.__('Connect although the cluster does not respond')}
                </label>
              </>
            )}
            <p>{trans.__('Adds to %1:', shown.path)}</p>
            <pre tabIndex={0}>{shown.config}</pre>
          </>
        )}
        <p role="status">
          {this._isBusy
            ? trans.__('Testing the connection…')
            : !shown && !this._error && trans.__('Loading…')}
        </p>
      </>
    );
  }

  protected override onUpdateRequest(msg: Message): void {
    super.onUpdateRequest(msg);
    const button = this.node
      .closest('.jp-Dialog')
      ?.querySelector<HTMLButtonElement>('.jp-mod-accept');
    if (button) {
      // Not while it is busy: the focus would be lost.
      button.disabled = this._shown === null;
    }
  }

  private _set(field: keyof IOptions, value: string): void {
    this._options = { ...this._options, [field]: value.trim() || null };
    this._problem = null;
    this._isUntested = false;
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => void this._preview(), TYPING_MS);
  }

  private async _preview(): Promise<void> {
    const options = this._options;
    try {
      const shown = await this._send({ ...options, dry_run: true });
      if (options === this._options) {
        this._shown = shown;
        this._error = null;
      }
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    this.update();
  }

  private _options: IOptions = {};
  private _shown: IConnection | null = null;
  private _error: ApiError | null = null;
  /** Why the cluster did not answer. */
  private _problem: IConnection['problem'] = null;
  private _isUntested = false;
  private _isBusy = false;
  private _connected: string | null = null;
  private _timer: number | undefined;
}

/** Examples of what is typed, which are the same in all languages. */
const EXAMPLES = { login_node: 'ubuntu@10.1.2.3', namespace: 'default' };

/** Typing is over when no key was pressed for so long. */
const TYPING_MS = 250;
