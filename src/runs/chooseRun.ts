import { Dialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { IRun } from './types';

/**
 * A field for the id of a run, with the known ones as proposals.
 */
export class ChooseRun extends Widget implements Dialog.IBodyWidget<string> {
  constructor(runs: readonly IRun[], trans: TranslationBundle) {
    super();
    const label = document.createElement('label');
    label.textContent = trans.__('Run id');
    const list = document.createElement('datalist');
    list.id = 'jp-HyperPod-runs';
    list.append(...runs.map(run => new Option(run.name, run.run_id)));
    this._input.setAttribute('list', list.id);
    this._input.className = 'jp-HyperPod-input';
    this._input.value = runs[0]?.run_id ?? '';
    label.append(this._input);
    this.node.append(label, list);
  }

  getValue(): string {
    return this._input.value.trim();
  }

  private readonly _input = document.createElement('input');
}
