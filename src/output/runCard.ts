import { TranslationBundle } from '@jupyterlab/translation';
import { Message, MessageLoop } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';

import { ILogClient, LogView } from '../logs';
import type { ICellPlace } from '../logs/place';
import { LogInStep } from '../runs/logInStep';
import { RunsModel } from '../runs/model';
import { RunPageModel } from '../runs/pageModel';
import { IRun } from '../runs/types';
import type { Preferences } from '../settings';
import { CardHead } from './cardHead';
import { CardMenu } from './cardMenu';
import { CardNotice } from './cardNotice';
import { VisibilityWatch } from './visibility';

/**
 * What the buttons of a card do.
 */
export interface ICardActions {
  open(run: IRun): void;
  cancel(run: IRun): void;
  copyCommand(run: IRun): void;
  /** Saves the executed notebook, and opens it. */
  openExecuted(run: IRun): void;
  /** Shows a line of a cell that ran. */
  openPlace(runId: string, place: ICellPlace): void;
  /** Puts the log's last lines into the output as text. */
  freeze(run: IRun): Promise<void>;
}

/**
 * A run in a cell's output: a head and the live log, which is asked for only while the card is seen.
 */
export class RunCard extends Panel {
  constructor(options: RunCard.IOptions) {
    super();
    const { actions, name, runId, runs, trans } = options;
    this._options = options;
    this.addClass('jp-HyperPod-RunCard');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('Run %1', name));
    this.model = new RunPageModel(runs, runId);
    const openMenu = (anchor: HTMLElement) => this._openMenu(anchor);
    const { model } = this;
    this.addWidget(new CardHead({ model, actions, openMenu, trans }));
    this.addWidget(new CardNotice(model, trans));
    this._resized = new ResizeObserver(() => this._onResized());
    model.changed.connect(this._onRun, this);
    this._watch = new VisibilityWatch(this.node, isSeen => this._see(isSeen));
  }

  readonly model: RunPageModel;

  /** The log; null before the run is known. */
  get log(): LogView | null {
    return this._log;
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._watch.dispose();
      this._resized.disconnect();
      this._menu?.dispose();
      this.model.dispose();
      super.dispose();
    }
  }

  protected override onBeforeDetach(msg: Message): void {
    this._menu?.dispose();
    this._menu = null;
    super.onBeforeDetach(msg);
  }

  private _see(isSeen: boolean): void {
    if (!isSeen) {
      this._log?.model.feed.suspend();
      return;
    }
    void this._log?.model.feed.resume();
    if (!this._wasSeen || !this.model.run) {
      this._wasSeen = true;
      this._options.runs.start();
      void this.model.load();
    }
  }

  private _onRun(): void {
    // The list may know the run before the card was seen.
    if (this.model.run && !this._log && this._wasSeen) {
      this._addLog();
    }
  }

  private _addLog(): void {
    const { logClient, preferences, runId, trans } = this._options;
    const log = new LogView({
      client: logClient,
      runId,
      preferences,
      trans,
      isCompact: true,
      openPlace: place => this._options.actions.openPlace(runId, place)
    });
    log.model.showsTime = false;
    new LogInStep(this.model, log.model);
    this._log = log;
    this.addWidget(log);
    this._resized.observe(log.node);
  }

  private _onResized(): void {
    // The log grows to its greatest height, of which Lumino's layout hears nothing.
    if (this._log?.isAttached) {
      MessageLoop.postMessage(this._log, Widget.ResizeMessage.UnknownSize);
    }
  }

  private _openMenu(anchor: HTMLElement): void {
    const { actions, trans } = this._options;
    const { run } = this.model;
    if (run) {
      this._menu?.dispose();
      this._menu = new CardMenu({
        actions,
        run: () => this.model.run ?? run,
        trans
      });
      this._menu.open(anchor);
    }
  }

  private readonly _options: RunCard.IOptions;
  private readonly _resized: ResizeObserver;
  private readonly _watch: VisibilityWatch;
  private _log: LogView | null = null;
  private _menu: CardMenu | null = null;
  private _wasSeen = false;
}

export namespace RunCard {
  export interface IOptions {
    runId: string;
    /** What the run is called before it is read. */
    name: string;
    runs: RunsModel;
    logClient: ILogClient;
    /** How the log looks at first, but for times. */
    preferences?: Preferences;
    actions: ICardActions;
    trans: TranslationBundle;
  }
}
