import { TranslationBundle } from '@jupyterlab/translation';
import { Message, MessageLoop } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';

import { TabbedWidgets } from '../components/tabs';
import { ILogClient, LogView } from '../logs';
import { IRunClient } from './client';
import { CodeTab } from './codeTab';
import { IRunActions, RunHeader } from './header';
import { LogInStep } from './logInStep';
import { MetricsTab } from './metricsTab';
import { RunsModel } from './model';
import { RunPageModel } from './pageModel';
import { TextTab } from './textTab';

/**
 * A run in the main area: its head, and tabs for its log, script, spec, code and metrics.
 */
export class RunPage extends Panel {
  constructor(options: RunPage.IOptions) {
    super();
    const { actions, runClient, runId, runs, trans } = options;
    this.addClass('jp-HyperPod-RunPage');
    this.node.setAttribute('role', 'region');
    this.node.tabIndex = -1;
    this.runId = runId;
    this.model = new RunPageModel(runs, runId);
    this.log = new LogView({
      client: options.logClient,
      runId,
      trans,
      openPlace: place => actions.openPlace(runId, place)
    });
    this._tabs = new TabbedWidgets(trans.__('Run views'), [
      titled(this.log, trans.__('Log')),
      titled(
        new TextTab(async () => (await runClient.script(runId)).text, trans),
        trans.__('Script')
      ),
      titled(
        new TextTab(
          async () => JSON.stringify(await runClient.spec(runId), null, 2),
          trans
        ),
        trans.__('Spec')
      ),
      titled(new CodeTab(runClient, runId, trans), trans.__('Code')),
      titled(new MetricsTab(runClient, runId, trans), trans.__('Metrics'))
    ]);
    this.addWidget(new RunHeader(this.model, actions, trans));
    this.addWidget(this._tabs);
    this.model.showRank = rank => {
      this._tabs.current = this.log;
      this.log.model.chooseRanks(String(rank));
    };
    this._resized = new ResizeObserver(() =>
      MessageLoop.postMessage(this._tabs, Widget.ResizeMessage.UnknownSize)
    );
    this.model.changed.connect(this._onChanged, this);
    new LogInStep(this.model, this.log.model);
    this._onChanged();
    void this.model.load();
  }

  readonly runId: string;
  readonly model: RunPageModel;
  readonly log: LogView;

  override dispose(): void {
    if (!this.isDisposed) {
      this._resized.disconnect();
      this.model.dispose();
      super.dispose();
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

  private _onChanged(): void {
    const { error, run } = this.model;
    // Of a run that isn't there, one word is enough.
    this._tabs.setHidden(run === null && error !== null);
    if (run) {
      this.title.label = run.name;
      this.node.setAttribute('aria-label', run.name);
    }
  }

  private readonly _tabs: TabbedWidgets;
  private readonly _resized: ResizeObserver;
}

export namespace RunPage {
  export interface IOptions {
    runId: string;
    runs: RunsModel;
    runClient: IRunClient;
    logClient: ILogClient;
    actions: IRunActions;
    trans: TranslationBundle;
  }
}

function titled(widget: Widget, label: string): Widget {
  widget.title.label = label;
  return widget;
}
