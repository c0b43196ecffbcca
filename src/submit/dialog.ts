import { Dialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { IRun } from '../runs/types';
import { SubmitForm } from './form';
import { SubmitModel } from './model';
import { focusable, keepTabInside } from './tabbing';

/** Where typing begins. */
const FIRST_FIELD = 'resources.nodes';

/** Where it begins when the user says in the form what is to be run. */
const SOURCE_FIELD = 'source';

/** Where Enter submits. It chooses a proposal where there are some, and buttons, choices and long texts have it for themselves. */
const SENDING = [
  '.jp-HyperPod-SubmitForm',
  'input:not([list], [data-own-enter], [type=search])'
].join(' ');

/** Milliseconds after which a form that could not be read is asked for once more. */
const RETRY = 5000;

/**
 * The dialog that submits a run. It stays open until the run is accepted, and shows what is wrong.
 */
export class SubmitDialog extends Dialog<null> {
  constructor(model: SubmitModel, trans: TranslationBundle, retry = RETRY) {
    const form = new SubmitForm(model, trans);
    super({
      title: model.isOpen
        ? trans.__('New run')
        : trans.__('Run %1 on a cluster', model.source.label),
      body: form,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({
          label: trans.__('Submit'),
          caption: trans.__('Submit the run (Enter or Ctrl+Enter)')
        })
      ]
    });
    this.addClass('jp-HyperPod-SubmitDialog');
    this._form = form;
    this._model = model;
    this._trans = trans;
    this._retry = retry;
    model.changed.connect(this._onChanged, this);
    this._onChanged();
    void this._keepFocus();
  }

  /** The run that was sent; null when the dialog was closed before. Whoever closes it while it is sent gets the run all the same. */
  async sent(): Promise<IRun | null> {
    await this._pending;
    return this._run;
  }

  override handleEvent(event: Event): void {
    if (event.type === 'focus' && this._takeFocusBack(event)) {
      return;
    }
    if (event.type === 'keydown') {
      const { ctrlKey, key, metaKey } = event as KeyboardEvent;
      const { target } = event;
      if (key === 'Enter' && (ctrlKey || metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        this.resolve();
        return;
      }
      if (key === 'Enter' && target instanceof HTMLElement) {
        if (target.matches(SENDING)) {
          event.preventDefault();
          event.stopPropagation();
          this.resolve();
          return;
        }
        if (this._form.node.contains(target)) {
          return;
        }
      }
      if (key === 'Tab') {
        keepTabInside(this.node, event as KeyboardEvent);
        return;
      }
    }
    super.handleEvent(event);
  }

  override resolve(index?: number): void {
    if (index === 0 || this._run) {
      super.resolve(index);
    } else if (!this._model.sending) {
      this._pending = this._send();
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      clearTimeout(this._timer);
      this._model.changed.disconnect(this._onChanged, this);
      super.dispose();
    }
  }

  private async _send(): Promise<void> {
    this._run ??= await this._model.submit();
    if (this.isDisposed) {
      return;
    }
    if (this._run) {
      super.resolve();
    } else {
      this._form.showProblem();
    }
  }

  private async _focusFirst(): Promise<void> {
    // The dialog itself puts the focus on its button first.
    await this.ready;
    const first = this._model.isOpen ? SOURCE_FIELD : FIRST_FIELD;
    requestAnimationFrame(() => this._form.focusField(first));
  }

  /** While there is no form yet, the keys are the dialog's all the same: its button to send can't take them. */
  private async _keepFocus(): Promise<void> {
    await this.ready;
    if (!this._wasReady) {
      this._focusOther();
    }
  }

  /** A page that opens meanwhile takes the focus. Give it back to where the user was: on the button that submits, as in other dialogs, the next Enter would submit. */
  private _takeFocusBack(event: Event): boolean {
    const { target } = event;
    if (target instanceof HTMLElement && this.node.contains(target)) {
      this._focused = target;
      return false;
    }
    if (!this._focused?.isConnected) {
      return false;
    }
    event.stopPropagation();
    this._focused.focus();
    return document.activeElement === this._focused;
  }

  /** Put the focus on "Try again", or on what else there is. */
  private _focusOther(): void {
    const again = this._form.node.querySelector<HTMLElement>('button');
    (again ?? focusable(this.node)[0])?.focus();
  }

  /** Nothing could be read: retry automatically. */
  private _onFailed(): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => void this._model.load(), this._retry);
  }

  private _onChanged(): void {
    const button = this.node.querySelector<HTMLButtonElement>(
      '.jp-Dialog-button.jp-mod-accept'
    );
    if (button) {
      const { isBlocked, ready, sending } = this._model;
      button.disabled = sending || !ready || isBlocked;
      const label = button.querySelector('.jp-Dialog-buttonLabel') ?? button;
      label.textContent =
        this._model.costQuestion === null
          ? this._trans.__('Submit')
          : this._trans.__('Submit anyway');
      button.setAttribute('aria-label', label.textContent);
    }
    if (this._model.ready && !this._wasReady) {
      this._wasReady = true;
      clearTimeout(this._timer);
      void this._focusFirst();
    } else if (!this._model.ready && this._model.error) {
      this._onFailed();
    }
  }

  private readonly _form: SubmitForm;
  private readonly _model: SubmitModel;
  private readonly _trans: TranslationBundle;
  private readonly _retry: number;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _wasReady = false;
  private _focused: HTMLElement | null = null;
  private _run: IRun | null = null;
  private _pending: Promise<void> | null = null;
}
