import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';
import { PanelLayout } from '@lumino/widgets';

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
    this._chips.forEach(chip => chip.dispose());
    this._chips.clear();
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
      return;
    }
    const { open, trans } = this._options;
    const chip = new CellChip({ cell: cell.model, shown, open, trans });
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
    this._chips.get(cell)?.dispose();
    this._chips.delete(cell);
  }

  private readonly _options: NotebookChips.IOptions;
  private readonly _chips = new Map<Cell, CellChip>();
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
    trans: TranslationBundle;
  }
}
