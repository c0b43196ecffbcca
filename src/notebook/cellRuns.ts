import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { RunsModel } from '../runs/model';
import { IRun, isEnded } from '../runs/types';
import { ICellsClient, IRunOfCell } from './client';

/**
 * The runs of a notebook's cells: asked of the server once, kept in step by the page's runs.
 */
export class CellRuns implements IDisposable {
  constructor(options: CellRuns.IOptions) {
    this._client = options.client;
    this._runs = options.runs;
    this._path = options.path;
    this._runs.changed.connect(this._onRunsChanged, this);
  }

  /** A cell has another run, or its run another state. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get path(): string {
    return this._path;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._runs.changed.disconnect(this._onRunsChanged, this);
      Signal.clearData(this);
    }
  }

  /** The newest run that has a cell, and the cell as it was sent. */
  of(cellId: string): { run: IRun; sent: IRunOfCell } | null {
    const sent = this._cells.get(cellId);
    const run = sent && this._known.get(sent.run_id);
    return sent && run ? { run, sent } : null;
  }

  /** The notebook has another name now. */
  async move(path: string): Promise<void> {
    this._path = path;
    await this.load();
  }

  /** Ask the server. What it can't say is not shown: a notebook works without. */
  async load(): Promise<void> {
    const path = this._path;
    try {
      const { cells, runs } = await this._client.ofNotebook(path);
      if (this._isDisposed || path !== this._path) {
        return;
      }
      this._known = new Map(runs.map(run => [run.run_id, run]));
      this._cells = new Map(cells.map(cell => [cell.id, cell]));
      if (runs.some(run => !isEnded(run.state))) {
        this._runs.start();
      }
      this._refresh();
      this._changed.emit();
    } catch {
      // The panel and the pages say what is wrong with the server.
    }
  }

  private _onRunsChanged(): void {
    if (this._runs.runs.some(run => this._isNew(run)) || this._hasLost()) {
      void this.load();
    } else if (this._refresh()) {
      this._changed.emit();
    }
  }

  /** Whether a run came from this notebook since the server was asked. */
  private _isNew(run: IRun): boolean {
    const { notebook } = run;
    if (
      notebook === null ||
      this._known.has(run.run_id) ||
      this._seen.has(run.run_id) ||
      !notebook.endsWith(`/${this._path}`)
    ) {
      return false;
    }
    // Asked for once only: the server may hold that it is another notebook's.
    this._seen.add(run.run_id);
    return true;
  }

  /** Whether a run that the page's list had is deleted. */
  private _hasLost(): boolean {
    let found = false;
    for (const runId of this._known.keys()) {
      if (this._runs.find(runId)) {
        this._followed.add(runId);
      } else {
        found = this._followed.delete(runId) || found;
      }
    }
    return found;
  }

  /** Take in newer states; whether there were any. */
  private _refresh(): boolean {
    let found = false;
    for (const [runId, run] of this._known) {
      const now = this._runs.find(runId);
      if (now && now !== run) {
        found ||= now.state !== run.state || now.reason !== run.reason;
        this._known.set(runId, now);
      }
    }
    return found;
  }

  private readonly _client: ICellsClient;
  private readonly _runs: RunsModel;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _seen = new Set<string>();
  private readonly _followed = new Set<string>();
  private _path: string;
  private _known = new Map<string, IRun>();
  private _cells = new Map<string, IRunOfCell>();
  private _isDisposed = false;
}

export namespace CellRuns {
  export interface IOptions {
    client: ICellsClient;
    runs: RunsModel;
    /** The notebook's path under the server's root. */
    path: string;
  }
}
