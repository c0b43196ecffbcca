import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';

import { LogList } from './logList';
import { LogStatus } from './logStatus';
import { LogToolbar } from './logToolbar';
import { ICellPlace, placeIn } from './place';
import { IMatch, IRowWords } from './rowElement';
import { ILogOrigin } from './types';
import { LogViewModel } from './viewModel';

/**
 * The log of a run: a toolbar, the lines, and what is to be said about them.
 */
export class LogView extends Panel {
  constructor(options: LogView.IOptions) {
    super();
    this.addClass('jp-HyperPod-LogView');
    const { trans } = options;
    this.model = new LogViewModel(options);
    const words: IRowWords = {
      ranks: count => trans.__('%1 ranks', count),
      folded: ranks =>
        trans.__('Ranks %1 wrote this line. Show each rank.', ranks),
      opened: trans.__('Fold identical lines'),
      labelOf: options.labelOf,
      isDated: options.isDated
    };
    this._list = new LogList(this.model.feed, trans.__('Log lines'), words);
    this._openPlace = options.openPlace ?? (() => undefined);
    this._list.matchOf = text => this._matchOf(text);
    this.toggleClass('jp-mod-compact', options.isCompact ?? false);
    this.addWidget(new LogToolbar(this.model, trans, options.isCompact));
    this.addWidget(this._list);
    this.addWidget(new LogStatus(this.model, trans));
    this.model.changed.connect(this._onChanged, this);
    this._onChanged();
  }

  /** What is shown, and how. */
  readonly model: LogViewModel;

  override dispose(): void {
    if (!this.isDisposed) {
      this.model.changed.disconnect(this._onChanged, this);
      super.dispose();
      this.model.dispose();
    }
  }

  handleEvent(event: Event): void {
    const { target, type } = event;
    const link =
      target instanceof Element ? target.closest('[role="link"]') : null;
    const place = link && placeIn(link.textContent ?? '');
    if (
      place &&
      (type === 'click' || (event as KeyboardEvent).key === 'Enter')
    ) {
      this._openPlace(place);
    }
  }

  protected override onBeforeDetach(msg: Message): void {
    this.node.removeEventListener('click', this);
    this.node.removeEventListener('keydown', this);
    super.onBeforeDetach(msg);
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.node.addEventListener('click', this);
    this.node.addEventListener('keydown', this);
    if (!this._started) {
      this._started = true;
      void this.model.start();
    }
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this._list.node.focus();
  }

  private _onChanged(): void {
    this.toggleClass('jp-mod-wrap', this.model.wraps);
    this.toggleClass('jp-mod-time', this.model.showsTime);
    this.toggleClass('jp-mod-fold', this.model.foldsNow);
    this._list.folds = this.model.foldsNow;
    const isFound = this.model.search.current !== null;
    if (this._wasFound && !isFound) {
      this._list.unmark();
    }
    this._wasFound = isFound;
    this._list.refresh();
  }

  private _matchOf(text: string): IMatch | null {
    const hit = this.model.search.current;
    return hit && hit.line === text
      ? { begin: hit.match[0], end: hit.match[1] }
      : null;
  }

  private readonly _list: LogList;
  private readonly _openPlace: (place: ICellPlace) => void;
  private _started = false;
  private _wasFound = false;
}

export namespace LogView {
  export interface IOptions extends LogViewModel.IOptions {
    trans: TranslationBundle;
    /** Only what is needed in little room. */
    isCompact?: boolean;
    /** What stands before lines of logs that are of no run. */
    labelOf?: (origin: ILogOrigin) => string;
    /** Whether times are with their day: of a log that goes on for many. */
    isDated?: boolean;
    /** Opens a cell at the line that a traceback names. */
    openPlace?: (place: ICellPlace) => void;
  }
}
