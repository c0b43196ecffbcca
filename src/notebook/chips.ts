import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';
import { PanelLayout, Widget } from '@lumino/widgets';

import { IRun } from '../runs/types';
import { CellChip } from './cellChip';
import { CellRuns } from './cellRuns';

/** Below the cell's header and its code. */
const PLACE = 2;

/**
 * The chips of a notebook's cells. They come and go with the cells, and with the runs.
 */
export class NotebookChips implements IDisposable {
  constructor(options: NotebookChips.IOptions) {
    this._options = options;
    const { panel, runs } = options;
    runs.changed.connect(this._sync, this);
    panel.content.modelContentChanged.connect(this._onContent, this);
    panel.content.modelChanged.connect(this._onContent, this);
    panel.context.pathChanged.connect(this._onPath, this);
    panel.disposed.connect(this.dispose, this);
    void panel.context.ready.then(() => runs.load());
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    const { panel, runs } = this._options;
    panel.content?.modelContentChanged.disconnect(this._onContent, this);
    panel.content?.modelChanged.disconnect(this._onContent, this);
    panel.context.pathChanged.disconnect(this._onPath, this);
    panel.disposed.disconnect(this.dispose, this);
    runs.changed.disconnect(this._sync, this);
    runs.dispose();
    cancelAnimationFrame(this._scheduled);
    [...this._chips.keys()].forEach(cell => this._remove(cell));
  }

  /** Show a run's log below the last of its cells; false where none of them is here. */
  async showLog(runId: string): Promise<boolean> {
    await this._options.runs.load();
    if (this._isDisposed) {
      return false;
    }
    const cells = this._options.panel.content.widgets;
    const cell = [...cells]
      .reverse()
      .find(one => this._runOf(one)?.run_id === runId);
    if (cell && !this._cards.has(cell)) {
      await this._toggleLog(cell);
    }
    return cell !== undefined;
  }

  private _runOf(cell: Cell): IRun | null {
    const { runs } = this._options;
    return this._chips.has(cell) ? (runs.of(cell.model.id)?.run ?? null) : null;
  }

  /** Show the log of a cell's run below its chip, or hide it. */
  private async _toggleLog(cell: Cell): Promise<void> {
    const run = this._runOf(cell);
    if (this._cards.has(cell)) {
      this._removeCard(cell);
    } else if (run) {
      const card = await this._options.makeCard(run);
      const { layout } = cell;
      const chip = this._chips.get(cell);
      if (!chip || this._cards.has(cell) || !(layout instanceof PanelLayout)) {
        card.dispose();
        return;
      }
      this._cards.set(cell, { card, runId: run.run_id });
      layout.insertWidget(layout.widgets.indexOf(chip) + 1, card);
      chip.hasLog = true;
    }
  }

  private _removeCard(cell: Cell): void {
    this._cards.get(cell)?.card.dispose();
    this._cards.delete(cell);
    const chip = this._chips.get(cell);
    if (chip) {
      chip.hasLog = false;
    }
  }

  /** Cells may have come: look once for many changes. */
  private _onContent(): void {
    const count = this._options.panel.content.widgets.length;
    if (count !== this._count) {
      cancelAnimationFrame(this._scheduled);
      this._scheduled = requestAnimationFrame(() => this._sync());
    }
  }

  private _onPath(): void {
    const { panel, pathOf, runs } = this._options;
    void runs.move(pathOf(panel.context.path));
  }

  private _sync(): void {
    if (this._isDisposed) {
      return;
    }
    const { panel, runs } = this._options;
    const cells = panel.content.widgets;
    this._count = cells.length;
    const there = new Set<Cell>(cells);
    for (const cell of [...this._chips.keys()]) {
      if (!there.has(cell) || cell.isDisposed) {
        this._remove(cell);
      }
    }
    for (const cell of cells) {
      const shown = cell.model.type === 'code' && runs.of(cell.model.id);
      if (shown) {
        this._show(cell, shown);
      } else {
        this._remove(cell);
      }
    }
  }

  private _show(cell: Cell, shown: CellChip.IShown): void {
    const there = this._chips.get(cell);
    if (there) {
      there.set(shown);
      const card = this._cards.get(cell);
      if (card && card.runId !== shown.run.run_id) {
        // The log goes on to be that of the newest run.
        this._removeCard(cell);
        void this._toggleLog(cell);
      }
      return;
    }
    const { open, trans } = this._options;
    const chip = new CellChip({
      cell: cell.model,
      shown,
      open,
      toggleLog: () => void this._toggleLog(cell),
      trans
    });
    this._chips.set(cell, chip);
    // A cell out of sight has no parts yet.
    void cell.ready.then(() => {
      const { layout } = cell;
      if (
        !cell.isDisposed &&
        !chip.isDisposed &&
        layout instanceof PanelLayout
      ) {
        layout.insertWidget(PLACE, chip);
      }
    });
  }

  private _remove(cell: Cell): void {
    this._removeCard(cell);
    this._chips.get(cell)?.dispose();
    this._chips.delete(cell);
  }

  private readonly _options: NotebookChips.IOptions;
  private readonly _chips = new Map<Cell, CellChip>();
  /** The logs that are shown. */
  private readonly _cards = new Map<Cell, { card: Widget; runId: string }>();
  private _count = -1;
  private _scheduled = 0;
  private _isDisposed = false;
}

export namespace NotebookChips {
  export interface IOptions {
    panel: NotebookPanel;
    runs: CellRuns;
    /** A document's path under the server's root. */
    pathOf: (path: string) => string;
    open: (runId: string) => void;
    /** Makes what shows a run's log in a cell. */
    makeCard: (run: IRun) => Promise<Widget>;
    trans: TranslationBundle;
  }
}
