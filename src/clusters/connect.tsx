import { Dialog, ReactWidget, showDialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ApiError, Schema } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import type { IHyperPod } from '../tokens';
import { pathOf } from './client';

type IConnection = Schema<'Connection'>;
type IOptions = Omit<Schema<'ConnectBody'>, 'dry_run'>;

/**
 * Show what would be written into the configuration to submit to a HyperPod cluster, and write it once the user agrees.
 *
 * @returns the cluster's name in the configuration; null: nothing was written
 */
export async function connectCluster(
  { client, clusters, trans }: IHyperPod,
  cluster: string
): Promise<string | null> {
  const send = (options: IOptions, isDry: boolean) =>
    client.post<IConnection>(pathOf(cluster, 'connect'), {
      ...options,
      dry_run: isDry
    } satisfies Schema<'ConnectBody'>);
  const name =
    clusters.clusters?.find(one => one.hyperpod?.arn === cluster)?.hyperpod
      ?.name ?? cluster;
  let draft: IDraft = { options: {}, shown: null };
  let error: ApiError | null = null;
  for (;;) {
    // A dialog disposes of its body, so each has its own.
    const answer = await showDialog({
      title: trans.__('Connect to %1', name),
      body: new ConnectBody(chosen => send(chosen, true), draft, error, trans),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Connect') })
      ]
    });
    if (!answer.button.accept) {
      return null;
    }
    draft = answer.value ?? draft;
    try {
      const written = await send(draft.options, false);
      await clusters.refresh();
      return written.cluster;
    } catch (reason) {
      error = ApiError.of(reason);
    }
  }
}

/** What was chosen, and the last table that could be written. */
interface IDraft {
  readonly options: IOptions;
  readonly shown: IConnection | null;
}

/** The fields of the dialog, and the table as it would be written. */
class ConnectBody extends ReactWidget {
  constructor(
    private readonly _preview: (options: IOptions) => Promise<IConnection>,
    draft: IDraft,
    private _refusal: ApiError | null,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this._options = draft.options;
    this._shown = draft.shown;
    this.addClass('jp-HyperPod-Connect');
    void this._read();
  }

  getValue(): IDraft {
    return { options: this._options, shown: this._shown };
  }

  protected override render(): JSX.Element {
    const trans = this._trans;
    const shown = this._shown;
    const refusal = this._error ?? this._refusal;
    const isSlurm = shown?.config.includes('"slurm"') ?? false;
    const field = isSlurm ? 'login_node' : 'namespace';
    return (
      <>
        {refusal && <ErrorMessage error={refusal} trans={trans} />}
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
                defaultValue={this._options[field] ?? ''}
                placeholder={EXAMPLES[field]}
                onChange={event => this._set(field, event.target.value)}
              />
            </label>
            <p>{trans.__('Adds to %1:', shown.path)}</p>
            <pre tabIndex={0}>{shown.config}</pre>
          </>
        )}
        {!shown && !refusal && <p role="status">{trans.__('Loading…')}</p>}
      </>
    );
  }

  protected override onUpdateRequest(msg: Message): void {
    super.onUpdateRequest(msg);
    const button = this.node
      .closest('.jp-Dialog')
      ?.querySelector<HTMLButtonElement>('.jp-mod-accept');
    if (button) {
      button.disabled = this._shown === null;
    }
  }

  private _set(field: keyof IOptions, value: string): void {
    this._refusal = null;
    this._options = { ...this._options, [field]: value.trim() || null };
    clearTimeout(this._timer);
    this._timer = window.setTimeout(() => void this._read(), TYPING_MS);
  }

  private async _read(): Promise<void> {
    const options = this._options;
    try {
      const shown = await this._preview(options);
      if (options === this._options) {
        this._shown = shown;
        this._error = null;
      }
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    this.update();
  }

  private _options: IOptions;
  private _shown: IConnection | null;
  private _error: ApiError | null = null;
  private _timer: number | undefined;
}

/** Examples of what is typed, which are the same in all languages. */
const EXAMPLES = { login_node: 'ubuntu@10.1.2.3', namespace: 'default' };

/** Typing is over when no key was pressed for so long. */
const TYPING_MS = 250;
