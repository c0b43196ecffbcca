import { ReactWidget } from '@jupyterlab/ui-components';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { FileAction } from './fileClient';
import { IStoredFile } from './types';
import { fileText, stateText } from './fileWords';

/**
 * The body of a dialog: files, where their bytes are, and what became of a request.
 */
export class FileStates extends ReactWidget {
  /**
   * @param files The files.
   * @param actions What can be done to some of them; null when something was done.
   * @param trans The words.
   */
  constructor(
    files: readonly IStoredFile[],
    actions: readonly FileAction[] | null,
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-HyperPod-FileStates');
    this._files = files;
    this._actions = actions;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    const trans = this._trans;
    return (
      <>
        <table className="jp-HyperPod-Table">
          <thead>
            <tr>
              <th scope="col">{trans.__('File')}</th>
              <th scope="col">{trans.__('Location')}</th>
              <th scope="col">{trans.__('Note')}</th>
            </tr>
          </thead>
          <tbody>
            {this._files.map(file => (
              <tr key={file.path}>
                <td>{file.path}</td>
                <td>
                  {file.state === null ? '' : stateText(file.state, trans)}
                </td>
                <td>{fileText(file, trans)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {this._actions !== null && this._actions.length > 0 && (
          <p>
            {trans.__(
              'Each button applies to the files that support it. The transfer continues after you close this dialog.'
            )}
          </p>
        )}
      </>
    );
  }

  private readonly _files: readonly IStoredFile[];
  private readonly _actions: readonly FileAction[] | null;
  private readonly _trans: TranslationBundle;
}
