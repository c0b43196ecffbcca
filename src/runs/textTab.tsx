import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { LoadedText } from '../components/loadedText';

/**
 * A tab with a text that is read when the tab is first shown.
 */
export class TextTab extends ReactWidget {
  constructor(load: () => Promise<string>, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-TextTab');
    this._load = load;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return <LoadedText load={this._load} trans={this._trans} />;
  }

  private readonly _load: () => Promise<string>;
  private readonly _trans: TranslationBundle;
}
