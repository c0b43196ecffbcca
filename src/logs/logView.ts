import { TranslationBundle } from '@jupyterlab/translation';
import { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';

import { LogList } from './logList';
import { LogStatus } from './logStatus';
import { LogToolbar } from './logToolbar';
import { ICellPlace, placeIn } from './place';
import { finderOf } from './pattern';
import { Finder, IRowWords } from './rowElement';
import { TimelineStrip } from './timelineStrip';
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
      nodes: count => trans.__('%1 nodes', count),
      folded: ranks =>
        trans.__('Ranks %1 wrote this line. Show each rank.', ranks),
      hidden: count =>
        trans._n('launcher: %1 line', 'launcher: %1 lines', count),
      show: trans.__('Show the launcher’s lines'),
      opened: trans.__('Fold these lines'),
      labelOf: options.labelOf,
      isDated: options.isDated
    };
    this._list = new LogList(this.model.feed, trans.__('Log lines'), words);
    this._openPlace = options.openPlace ?? (() => undefined);
    this._list.endSeen.connect((_, isSeen) => (this.model.endSeen = isSeen));
    this._list.viewed.connect((_, range) => (this.model.viewed = range));
    this.toggleClass('jp-mod-compact', options.isCompact ?? false);
    this._toolbar = new LogToolbar(this.model, trans, options.isCompact);
    this.addWidget(this._toolbar);
    if (!options.isCompact) {
      this.addWidget(new TimelineStrip(this.model, trans));
      // It takes room from the lines.
      this.model.timeline.changed.connect(() => this._list.refresh());
    }
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
    if (event instanceof KeyboardEvent && this._onKey(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
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

  /** Keys of a search, wherever the focus is in here. */
  private _onKey(event: KeyboardEvent): boolean {
    const { search } = this.model;
    if (isFindKey(event)) {
      this._toolbar.focusSearch();
    } else if (event.key === 'F3' && search.text !== '') {
      void (event.shiftKey ? search.backward() : search.forward());
    } else if (event.key === 'Escape' && search.text !== '') {
      void this.model.find('');
      this._list.node.focus();
    } else {
      return false;
    }
    return true;
  }

  private _onChanged(): void {
    const { model } = this;
    this.toggleClass('jp-mod-wrap', model.wraps);
    this.toggleClass('jp-mod-time', model.showsTime);
    this.toggleClass('jp-mod-fold', model.foldsNow);
    this._list.fold(model.foldsNow, model.foldsNodesNow);
    const isFound = model.search.current !== null;
    if (this._wasFound && !isFound) {
      this._list.unmark();
    }
    this._wasFound = isFound;
    this._setFinder();
    this._list.refresh();
  }

  /** What is looked for is marked in every line that has it. */
  private _setFinder(): void {
    const { current, pattern } = this.model.search;
    const finder = pattern === '' ? null : finderOf(pattern);
    // A pattern that only the server understands is marked where that has found it.
    const key = `${pattern} ${finder ? '' : current?.cursor}`;
    if (key !== this._finderKey) {
      this._finderKey = key;
      this._list.find = finder ?? (text => this._found(text));
    }
  }

  private _found(text: string): ReturnType<Finder> {
    const hit = this.model.search.current;
    return hit && hit.line === text
      ? [{ begin: hit.match[0], end: hit.match[1] }]
      : [];
  }

  private readonly _toolbar: LogToolbar;
  private readonly _list: LogList;
  private readonly _openPlace: (place: ICellPlace) => void;
  private _started = false;
  private _wasFound = false;
  private _finderKey = ' ';
}

/** Ctrl+F, or Cmd+F on a Mac. */
function isFindKey(event: KeyboardEvent): boolean {
  const { altKey, ctrlKey, key, metaKey, shiftKey } = event;
  return (
    (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === 'f'
  );
}

export namespace LogView {
  export interface IOptions extends LogViewModel.IOptions {
    trans: TranslationBundle;
    /** Only what is needed in little room. */
    isCompact?: boolean;
    /** The prefix of lines of logs that belong to no run. */
    labelOf?: (origin: ILogOrigin) => string;
    /** Whether times are with their day: of a log that goes on for many. */
    isDated?: boolean;
    /** Opens a cell at the line that a traceback names. */
    openPlace?: (place: ICellPlace) => void;
  }
}
