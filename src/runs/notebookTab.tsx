import { CodeCellModel, ICellModel } from '@jupyterlab/cells';
import {
  NotebookModel,
  NotebookWidgetFactory,
  StaticNotebook
} from '@jupyterlab/notebook';
import { IOutputModel } from '@jupyterlab/rendermime';
import { TranslationBundle } from '@jupyterlab/translation';
import { JSONExt } from '@lumino/coreutils';
import { Panel } from '@lumino/widgets';
import * as React from 'react';

import { mayShow } from '../actions/questions';
import { ApiError } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { Polled } from '../components/polled';
import { WatchingWidget } from '../components/watchingWidget';
import { IExecutedNotebook, IRunClient } from './client';
import type { IRunActions } from './header';
import { RunPageModel } from './pageModel';
import { IRun } from './types';

const POLL_MS = 4_000;

/**
 * The executed notebook of one rank, read while it is seen and the run goes on.
 */
export class ExecutedNotebookModel extends Polled<IExecutedNotebook> {
  constructor(
    private readonly _client: Pick<IRunClient, 'notebook'>,
    private readonly _runId: string,
    private readonly _factory: NotebookWidgetFactory
  ) {
    super({ name: 'run-notebook', interval: POLL_MS, linger: 0 });
  }

  get rank(): number {
    return this._rank;
  }

  set rank(rank: number) {
    this._rank = rank;
    this._text = undefined;
    this._notebook = null;
    this._outputs = [];
    this.turnTo({ forget: true });
    // Of a run that has ended, nothing is polled any more.
    this.start();
  }

  /** The notebook as JupyterLab shows it; another one for another rank. */
  get notebook(): NotebookModel | null {
    return this._notebook;
  }

  /** The first cell with an error, from 0; -1 without one. */
  get errorCell(): number {
    return [...(this._notebook?.cells ?? [])].findIndex(
      cell =>
        cell instanceof CodeCellModel &&
        outputsOf(cell).some(output => output.type === 'error')
    );
  }

  /** Whether JupyterLab shows less of an output because it is not trusted. */
  get isBlocked(): boolean {
    const { rendermime } = this._factory;
    return this._outputs.some(
      ({ data, trusted }) =>
        !trusted &&
        (rendermime.preferredMimeType(data, 'any') !==
          rendermime.preferredMimeType(data, 'ensure') ||
          ACTIVE.test(JSON.stringify(data['text/html'] ?? '')))
    );
  }

  /** Let the outputs run scripts; those of another user's run once this user has agreed. */
  async trust(
    { own, user }: Pick<IRun, 'own' | 'user'>,
    trans: TranslationBundle
  ): Promise<void> {
    if (!own && !(await mayShow(user, trans))) {
      return;
    }
    this._trusted = true;
    this._notebook = null;
    this._build();
    this.turnTo({ forget: false });
  }

  protected override read(): Promise<IExecutedNotebook> {
    return this._client.notebook(this._runId, this._rank);
  }

  protected override onAnswer(answer: IExecutedNotebook | ApiError): void {
    if (answer instanceof ApiError) {
      return;
    }
    const text = JSON.stringify(answer.document);
    if (text !== this._text) {
      this._text = text;
      this._build();
    }
    if (answer.ended) {
      super.stop();
    }
  }

  private _build(): void {
    const document = this.value?.document;
    if (!isNotebook(document)) {
      return;
    }
    const read = modelOf(document);
    if (this._notebook?.cells.length === read.cells.length) {
      // What did not change keeps its selection and its place.
      [...this._notebook.cells].forEach((cell, index) => {
        update(cell, read.cells.get(index));
      });
      read.dispose();
    } else {
      this._notebook = read;
    }
    this._outputs = [];
    for (const cell of this._notebook.cells) {
      cell.setMetadata('editable', false);
      if (cell instanceof CodeCellModel) {
        cell.trusted = this._trusted;
        const outputs = outputsOf(cell);
        this._outputs.push(...outputs);
        if (linesOf(outputs) > MAX_LINES) {
          cell.setMetadata('scrolled', true);
        }
      }
    }
  }

  private _rank = 0;
  private _trusted = false;
  private _text: string | undefined;
  private _notebook: NotebookModel | null = null;
  private _outputs: IOutputModel[] = [];
}

/**
 * The notebook of a run with its outputs, as JupyterLab shows notebooks. The outputs come from a job, so they are not trusted: HTML is
 * sanitized, and scripts do not run, until the user asks for it.
 */
export class NotebookTab extends Panel {
  constructor(options: NotebookTab.IOptions) {
    super();
    this.addClass('jp-HyperPod-NotebookTab');
    const { client, factory, page } = options;
    this._trans = options.trans;
    this._model = new ExecutedNotebookModel(client, page.runId, factory);
    this._notebook = new StaticNotebook({
      rendermime: factory.rendermime.clone(),
      contentFactory: factory.contentFactory,
      mimeTypeService: factory.mimeTypeService,
      editorConfig: factory.editorConfig,
      notebookConfig: { ...factory.notebookConfig, windowingMode: 'none' }
    });
    this._notebook.addClass('jp-Notebook');
    const { node, outerNode } = this._notebook;
    node.setAttribute('role', 'region');
    node.setAttribute('aria-label', this._trans.__('Cells and outputs'));
    outerNode.tabIndex = 0;
    this.addWidget(new Bar(this._model, options, () => this._scrollToError()));
    this.addWidget(this._notebook);
    this._model.changed.connect(this._show, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._model.changed.disconnect(this._show, this);
      super.dispose();
    }
  }

  private _show(): void {
    const model = this._model.notebook;
    const { outerNode } = this._notebook;
    if (model !== this._notebook.model) {
      const top = outerNode.scrollTop;
      const old = this._notebook.model;
      this._notebook.model = model;
      old?.dispose();
      outerNode.scrollTop = top;
    }
    this._notebook.widgets.forEach((cell, index) => {
      void cell.ready.then(() => this._label(cell.node, index + 1));
    });
  }

  /** JupyterLab gives the text of a cell no name, and a long output no tab stop. */
  private _label(cell: HTMLElement, number: number): void {
    cell
      .querySelector('.cm-content')
      ?.setAttribute('aria-label', this._trans.__('Cell %1', number));
    cell
      .querySelector('.jp-mod-outputsScrolled .jp-OutputArea')
      ?.setAttribute('tabindex', '0');
  }

  private _scrollToError(): void {
    this._notebook.widgets[this._model.errorCell]?.node.scrollIntoView({
      block: 'end'
    });
  }

  private readonly _trans: TranslationBundle;

  private readonly _model: ExecutedNotebookModel;
  private readonly _notebook: StaticNotebook;
}

/** An output with more lines scrolls in a box of its own. */
const MAX_LINES = 60;
/** What JupyterLab removes from HTML that is not trusted. */
const ACTIVE = /<(script|iframe|svg|embed|object)\b/i;

/** Show the outputs of a cell that was read again, if they are others. */
function update(shown: ICellModel, read: ICellModel): void {
  if (!(shown instanceof CodeCellModel && read instanceof CodeCellModel)) {
    return;
  }
  const outputs = read.outputs.toJSON();
  if (!JSONExt.deepEqual(shown.outputs.toJSON(), outputs)) {
    shown.outputs.fromJSON(outputs);
  }
  shown.executionCount = read.executionCount;
}

function outputsOf({ outputs }: CodeCellModel): IOutputModel[] {
  return Array.from({ length: outputs.length }, (_, i) => outputs.get(i));
}

/** Lines of printed text and of tracebacks. */
function linesOf(outputs: readonly IOutputModel[]): number {
  return outputs
    .filter(({ type }) => type === 'stream' || type === 'error')
    .map(({ data }) => JSON.stringify(data).split('\\n').length)
    .reduce((sum, lines) => sum + lines, 0);
}

type NotebookContent = Parameters<NotebookModel['fromJSON']>[0];

function modelOf(document: NotebookContent): NotebookModel {
  const model = new NotebookModel();
  model.fromJSON(document);
  return model;
}

function isNotebook(value: object | undefined): value is NotebookContent {
  return value !== undefined && 'cells' in value && Array.isArray(value.cells);
}

export namespace NotebookTab {
  export interface IOptions {
    readonly client: Pick<IRunClient, 'notebook'>;
    readonly page: RunPageModel;
    readonly factory: NotebookWidgetFactory;
    readonly actions: Pick<IRunActions, 'openExecuted'>;
    readonly trans: TranslationBundle;
  }
}

/**
 * What stands above the cells.
 */
class Bar extends WatchingWidget<ExecutedNotebookModel> {
  constructor(
    model: ExecutedNotebookModel,
    private readonly _options: NotebookTab.IOptions,
    private readonly _scrollToError: () => void
  ) {
    super(model);
    this.addClass('jp-HyperPod-NotebookTab-bar');
  }

  protected override render(): JSX.Element {
    const { actions, page, trans } = this._options;
    const { error, rank, value } = this.watched;
    const { run } = page;
    const last = run ? run.nodes * run.processes_per_node - 1 : 0;
    return (
      <>
        {last > 0 && (
          <label>
            {trans.__('Rank')}{' '}
            <input
              className="jp-HyperPod-input"
              type="number"
              min={0}
              max={last}
              defaultValue={rank}
              onChange={({ target: { validity, valueAsNumber: chosen } }) => {
                if (validity.valid && chosen >= 0) {
                  this.watched.rank = chosen;
                }
              }}
            />
          </label>
        )}
        {value && run && (
          <button
            type="button"
            className="jp-HyperPod-button"
            title={trans.__(
              'Save the notebook with these outputs, and open it'
            )}
            onClick={() => actions.openExecuted(run, rank)}
          >
            {trans.__('Open as notebook')}
          </button>
        )}
        {this.watched.errorCell >= 0 && (
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={this._scrollToError}
          >
            {trans.__('Go to error')}
          </button>
        )}
        {this.watched.isBlocked && (
          <>
            <span role="status">
              {trans.__('Scripts and SVG in outputs are not shown.')}
            </span>
            <button
              type="button"
              className="jp-HyperPod-button"
              title={trans.__(
                'They can do what you can do in JupyterLab. Show them only if you trust the code of this run.'
              )}
              onClick={() => run && void this.watched.trust(run, trans)}
            >
              {trans.__('Trust and show')}
            </button>
          </>
        )}
        {!value && !error && <p role="status">{trans.__('Loading…')}</p>}
        {error && (
          <ErrorMessage
            error={error}
            trans={trans}
            retry={() => this.watched.refresh()}
          />
        )}
      </>
    );
  }
}
