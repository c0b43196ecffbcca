import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import { ISignal } from '@lumino/signaling';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';

/**
 * A section of the panel that can be folded. It takes the room of its content.
 */
export abstract class PanelSection extends SignalWidget {
  constructor(
    changed: ISignal<unknown, unknown>,
    private readonly _label: string,
    protected readonly trans: TranslationBundle
  ) {
    super(changed);
    this.addClass('jp-HyperPod-PanelSection');
  }

  /** Whether its content is seen. */
  protected get isOpen(): boolean {
    return this.isVisible && !this._isFolded;
  }

  /** The part beside the name, and the content. */
  protected abstract renderControls(): React.ReactNode;
  protected abstract renderContent(): React.ReactNode;

  /** The content is seen, or is not any more. */
  protected abstract onOpen(isOpen: boolean): void;

  protected override render(): JSX.Element {
    const isFolded = this._isFolded;
    const Caret = isFolded ? caretRightIcon : caretDownIcon;
    return (
      <section aria-label={this._label}>
        <header className="jp-HyperPod-PanelSection-head">
          <h3>
            <button
              type="button"
              aria-expanded={!isFolded}
              onClick={() => this._fold(!isFolded)}
            >
              <Caret.react tag="span" width="16px" height="16px" />
              {this._label}
            </button>
          </h3>
          {!isFolded && this.renderControls()}
        </header>
        {!isFolded && this.renderContent()}
      </section>
    );
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._tell();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._tell();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._tell();
  }

  protected override onBeforeDetach(msg: Message): void {
    this.onOpen(false);
    super.onBeforeDetach(msg);
  }

  private _fold(isFolded: boolean): void {
    this._isFolded = isFolded;
    this.toggleClass('jp-mod-folded', isFolded);
    this._tell();
  }

  private _tell(): void {
    this.onOpen(this.isOpen);
    this.update();
  }

  private _isFolded = false;
}
