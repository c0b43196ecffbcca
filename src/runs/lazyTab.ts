import { ReactWidget } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

/**
 * A tab whose content is created when first visible, so that nothing is requested for hidden tabs.
 */
export class LazyTab extends ReactWidget {
  constructor(private readonly _content: () => JSX.Element) {
    super();
    this.addClass('jp-HyperPod-TextTab');
  }

  protected override render(): JSX.Element {
    return this._wasSeen ? this._content() : React.createElement('div');
  }

  protected override onAfterAttach(msg: Message): void {
    this._wasSeen ||= this.isVisible;
    super.onAfterAttach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    if (!this._wasSeen) {
      this._wasSeen = true;
      this.update();
    }
  }

  private _wasSeen = false;
}
