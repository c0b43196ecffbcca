import { NotebookWidgetFactory } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import { Message, MessageLoop } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';
import * as React from 'react';

import { stateLabIcon } from '../components/stateIcon';
import { TabbedWidgets } from '../components/tabs';
import { stateText } from '../components/words';
import { ILogClient, LogView } from '../logs';
import type { Preferences } from '../settings';
import type { ITrainingClient } from '../training/client';
import type { NumbersModel } from '../training/numbersModel';
import { IRunClient } from './client';
import { CodeFiles } from './codeTab';
import { IRunActions, RunHeader } from './header';
import { NotebookTab } from './notebookTab';
import { LazyTab } from './lazyTab';
import { LogInStep } from './logInStep';
import { RunsModel } from './model';
import { runNames } from './names';
import { OverviewTab } from './overviewTab';
import { RunPageModel } from './pageModel';
import { Settings } from './settingsTab';
import { IRun } from './types';

/** Behind the overview and the log. */
const NOTEBOOK_AT = 2;

/**
 * A run in the main area: its head, and tabs for an overview, its log, code and settings.
 */
export class RunPage extends Panel {
  constructor(private readonly _options: RunPage.IOptions) {
    super();
    const { actions, runClient, runId, runs, trans } = _options;
    this.addClass('jp-HyperPod-RunPage');
    this.node.setAttribute('role', 'region');
    this.node.tabIndex = -1;
    this.runId = runId;
    this.title.label = runId;
    this.title.caption = runId;
    this.model = new RunPageModel(runs, runId);
    this.log = new LogView({
      client: _options.logClient,
      runId,
      preferences: _options.preferences,
      trans,
      openPlace: place => actions.openPlace(runId, place)
    });
    this._overview = new OverviewTab({
      model: this.model,
      client: runClient,
      logs: _options.logClient,
      training: _options.training,
      actions,
      trans
    });
    this._tabs = this._makeTabs();
    const client = runClient;
    this.addWidget(
      new RunHeader({
        model: this.model,
        actions,
        client,
        numbers: _options.numbers,
        trans
      })
    );
    this.addWidget(this._tabs);
    this.model.showRank = rank => {
      this._tabs.current = this.log;
      this.log.model.chooseRanks(String(rank));
    };
    this._resized = new ResizeObserver(() =>
      MessageLoop.postMessage(this._tabs, Widget.ResizeMessage.UnknownSize)
    );
    this.model.changed.connect(this._onChanged, this);
    runs.changed.connect(this._onRuns, this);
    this.node.addEventListener('click', this._onUse);
    this.node.addEventListener('input', this._onUse);
    this._tabs.currentChanged.connect(this._onTab, this);
    new LogInStep(this.model, this.log.model);
    this._onChanged();
    void this.model.load();
  }

  /** The user does something in the page. */
  get used(): ISignal<this, void> {
    return this._used;
  }

  readonly runId: string;
  readonly model: RunPageModel;
  readonly log: LogView;

  override dispose(): void {
    if (!this.isDisposed) {
      this._resized.disconnect();
      this.model.changed.disconnect(this._onChanged, this);
      this._options.runs.changed.disconnect(this._onRuns, this);
      super.dispose();
      this.model.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    // The head grows and shrinks with what is known of the run, of which Lumino's layout hears nothing.
    this._resized.observe(this._tabs.node);
  }

  protected override onBeforeDetach(msg: Message): void {
    this._resized.disconnect();
    super.onBeforeDetach(msg);
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    if (this._tabs.current === this.log) {
      this.log.activate();
    } else {
      this.node.focus();
    }
  }

  private _makeTabs(): TabbedWidgets {
    const { runClient: client, runId, runs, trans } = this._options;
    const previous = () => runs.previous(runId);
    const code = { client, runId, previous, trans };
    const settings = { client, runId, trans };
    return new TabbedWidgets(trans.__('Run views'), [
      titled(this._overview, trans.__('Overview')),
      titled(this.log, trans.__('Log')),
      titled(
        new LazyTab(() => React.createElement(CodeFiles, code)),
        trans.__('Code')
      ),
      titled(
        new LazyTab(() => React.createElement(Settings, settings)),
        trans.__('Settings')
      )
    ]);
  }

  private _onChanged(): void {
    const { error, removed, run } = this.model;
    // Of a run that isn't there, one word is enough.
    this._tabs.setHidden(removed || (run === null && error !== null));
    if (run) {
      this._setTitle(run);
      this.node.setAttribute('aria-label', run.name);
      this._chooseTab(run);
      this._offerNotebook(run);
    }
  }

  /** Runs with the same name are numbered; the list knows the numbers. */
  private _onRuns(): void {
    if (this.model.run) {
      this._setTitle(this.model.run);
    }
  }

  private _setTitle({ cluster, name, run_id, state }: IRun): void {
    const { runs, trans } = this._options;
    const label = runNames(runs.runs).get(run_id) ?? name;
    const word = stateText(state, trans);
    this.title.label = label;
    this.title.caption = trans.__('%1: %2 on %3', label, word, cluster);
    if (state !== this._iconOf) {
      this._iconOf = state;
      this.title.icon = stateLabIcon(state).bindprops({
        stylesheet: 'mainAreaTab'
      });
    }
  }

  /** A run that runs or succeeded shows its log, others why they wait or failed. Once the user has chosen a tab, it stays. */
  private _chooseTab(run: IRun): void {
    if (this._isTabChosen) {
      return;
    }
    const isLog = !['submitting', 'waiting', 'failed'].includes(run.state);
    // A reader keeps the tab when the run fails or is cancelled.
    if (!this._hasTab || !['failed', 'cancelled'].includes(run.state)) {
      this._hasTab = true;
      this._isChoosing = true;
      this._tabs.current = isLog ? this.log : this._overview;
      this._isChoosing = false;
      if (isLog && document.activeElement === this.node) {
        this.log.activate();
      }
      this.model.isOverviewShown = !isLog;
    }
  }

  private _onTab(): void {
    this._isTabChosen ||= !this._isChoosing;
    this.model.isOverviewShown = this._tabs.current === this._overview;
  }

  /** A tab for the executed notebook of a run that comes from one. */
  private _offerNotebook(run: IRun): void {
    const { actions, notebooks: factory, runClient: client } = this._options;
    const canShow = factory instanceof NotebookWidgetFactory;
    if (this._hasNotebook || run.notebook === null || !canShow) {
      return;
    }
    this._hasNotebook = true;
    const { trans } = this._options;
    const { model: page } = this;
    const tab = new NotebookTab({ actions, client, factory, page, trans });
    this._tabs.add(titled(tab, trans.__('Notebook')), NOTEBOOK_AT);
  }

  private readonly _onUse = (): void => this._used.emit();

  private readonly _used = new Signal<this, void>(this);
  private readonly _overview: OverviewTab;
  private readonly _tabs: TabbedWidgets;
  private readonly _resized: ResizeObserver;
  private _iconOf = '';
  private _hasNotebook = false;
  private _hasTab = false;
  private _isChoosing = false;
  private _isTabChosen = false;
}

export namespace RunPage {
  export interface IOptions {
    runId: string;
    runs: RunsModel;
    runClient: IRunClient;
    logClient: ILogClient;
    training: Pick<ITrainingClient, 'series'>;
    numbers: Pick<NumbersModel, 'changed' | 'of'>;
    /** How the log looks at first. */
    preferences?: Preferences;
    actions: IRunActions;
    /** How JupyterLab shows notebooks; null where it does not. */
    notebooks?: NotebookWidgetFactory.IFactory | null;
    trans: TranslationBundle;
  }
}

function titled(widget: Widget, label: string): Widget {
  widget.title.label = label;
  return widget;
}
