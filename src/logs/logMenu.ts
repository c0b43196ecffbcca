import { TranslationBundle } from '@jupyterlab/translation';
import { MenuSvg } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { IDisposable } from '@lumino/disposable';

import { LogViewModel } from './viewModel';

/** Without arguments. */
const NOTHING = {
  args: { type: 'object', properties: {}, additionalProperties: false }
} as const;

/** Looks of a log that are on or off. */
type Look = 'showsTime' | 'wraps' | 'folds' | 'foldsNodes' | 'showsNodeLogs';

/**
 * The menu of a log: how lines look, and downloads. Its commands live in a registry of their own: they are about this log.
 */
export class LogMenu implements IDisposable {
  constructor(model: LogViewModel, trans: TranslationBundle) {
    this._model = model;
    this._menu = new MenuSvg({ commands: this._commands });
    this._addLook('showsTime', trans.__('Timestamps'));
    this._addLook('wraps', trans.__('Wrap Long Lines'));
    if (model.hasRanks) {
      this._addLook('folds', trans.__('Fold Identical Lines of Ranks'));
    }
    if (model.hasNodeLogs) {
      this._addLook('showsNodeLogs', trans.__('Launcher Output'));
      this._addLook('foldsNodes', trans.__('Fold Launcher Output'));
    }
    this._addDownloads(trans);
  }

  get isDisposed(): boolean {
    return this._menu.isDisposed;
  }

  dispose(): void {
    this._menu.dispose();
  }

  /** Open below an element, which has the focus again at the end. */
  open(anchor: HTMLElement): void {
    const { bottom, right } = anchor.getBoundingClientRect();
    this._menu.aboutToClose.connect(() => anchor.focus());
    this._menu.open(right, bottom, { horizontalAlignment: 'right' });
  }

  private _addLook(look: Look, label: string): void {
    this._commands.addCommand(look, {
      label,
      describedBy: NOTHING,
      isToggled: () => this._model[look],
      isToggleable: true,
      execute: () => {
        this._model[look] = !this._model[look];
      }
    });
    this._menu.addItem({ command: look });
  }

  private _addDownloads(trans: TranslationBundle): void {
    const { archiveUrl, downloadUrl, isFiltered, rawUrl } = this._model;
    if (downloadUrl === null) {
      return;
    }
    this._menu.addItem({ type: 'separator' });
    this._addDownload(
      'download',
      isFiltered
        ? trans.__('Download Matching Lines')
        : this._model.ranks === ''
          ? trans.__('Download Log')
          : trans.__('Download Log of Ranks %1', this._model.ranks),
      downloadUrl
    );
    if (rawUrl !== null) {
      this._addDownload('raw', trans.__('Download Exact Output'), rawUrl);
    } else if (archiveUrl !== null) {
      this._addDownload(
        'archive',
        trans.__('Download One File per Rank (.zip)'),
        archiveUrl
      );
    }
  }

  private _addDownload(command: string, label: string, url: string): void {
    this._commands.addCommand(command, {
      label,
      describedBy: NOTHING,
      execute: () => {
        const link = document.createElement('a');
        link.href = url;
        link.download = '';
        link.click();
      }
    });
    this._menu.addItem({ command });
  }

  private readonly _model: LogViewModel;
  private readonly _commands = new CommandRegistry();
  private readonly _menu: MenuSvg;
}
