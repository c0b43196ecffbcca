import { Popup, showPopup } from '@jupyterlab/statusbar';
import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { AwsCallsModel } from './awsCalls';

/**
 * How often this server asks AWS, in the status bar; a click shows for what.
 */
export class AwsCallsItem extends SignalWidget {
  constructor(model: AwsCallsModel, trans: TranslationBundle) {
    super(model.changed);
    this._model = model;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    const { calls } = this._model.value;
    return (
      <button
        type="button"
        className="jp-HyperPod-StatusItem"
        title={this._trans.__(
          'AWS calls of the HyperPod extension in the last minute. Click for details.'
        )}
        aria-haspopup="dialog"
        onClick={() => this._show()}
      >
        {this._trans._n(
          'HyperPod: %1 AWS call a minute',
          'HyperPod: %1 AWS calls a minute',
          calls
        )}
      </button>
    );
  }

  /** The popup closes itself: by Escape, or a click elsewhere. */
  private _show(): void {
    if (this._popup === null || this._popup.isDisposed) {
      const body = new AwsCallsList(this._model, this._trans);
      body.disposed.connect(() => this.node.querySelector('button')?.focus());
      this._popup = showPopup({
        body,
        anchor: this,
        align: 'left',
        hasDynamicSize: true
      });
      body.node.focus();
    }
  }

  private readonly _model: AwsCallsModel;
  private readonly _trans: TranslationBundle;
  private _popup: Popup | null = null;
}

/** The operations that AWS was asked for. */
class AwsCallsList extends SignalWidget {
  constructor(model: AwsCallsModel, trans: TranslationBundle) {
    super(model.changed);
    this.addClass('jp-HyperPod-AwsCalls');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'dialog');
    this.node.setAttribute(
      'aria-label',
      trans.__('AWS calls in the last minute')
    );
    this._model = model;
    this._trans = trans;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.node.focus();
  }

  protected override render(): JSX.Element {
    const { operations, total } = this._model.value;
    const trans = this._trans;
    return (
      <>
        {operations.length === 0 ? (
          <p>{trans.__('No AWS calls in the last minute.')}</p>
        ) : (
          <table>
            <caption>{trans.__('AWS calls in the last minute')}</caption>
            <tbody>
              {operations.map(({ calls, operation, service }) => (
                <tr key={`${service}:${operation}`}>
                  <th scope="row">
                    {service}:{operation}
                  </th>
                  <td>{calls}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        <p>
          {trans._n(
            '%1 call since the server started.',
            '%1 calls since the server started.',
            total
          )}
        </p>
      </>
    );
  }

  private readonly _model: AwsCallsModel;
  private readonly _trans: TranslationBundle;
}
