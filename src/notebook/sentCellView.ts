import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

/**
 * A cell as it was sent, with one line marked: for where the notebook has changed since.
 */
export class SentCellView extends Widget {
  constructor(source: string, line: number, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-SentCell');
    const note = document.createElement('p');
    note.textContent = trans.__(
      'The notebook has changed since the run was submitted. This is the code that ran. Line %1 is marked.',
      line
    );
    const code = document.createElement('pre');
    code.tabIndex = 0;
    code.append(
      ...source.split('\n').map((text, at) => {
        const row = document.createElement('span');
        row.textContent = `${text}\n`;
        row.setAttribute('aria-current', String(at + 1 === line));
        return row;
      })
    );
    this.node.append(note, code);
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.node
      .querySelector('[aria-current="true"]')
      ?.scrollIntoView({ block: 'center' });
  }
}
