import type { IStateDB } from '@jupyterlab/statedb';
import { ReadonlyPartialJSONValue } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';

import { isRecord } from '../api';
import { FIRST_VIEW, IRunsView, keptView, viewOf } from './runsView';

/** Under this name JupyterLab's state database keeps them. */
const KEY = 'hyperpod_jlab:runs';

/** What keeps the views. */
export type IViewStore = Pick<IStateDB, 'fetch' | 'save'>;

/**
 * How the runs are shown now, and the views that the user saved under a name. Both outlive the page where there is a store.
 */
export class RunsViews {
  /**
   * @param store - null: nothing is kept
   */
  constructor(private readonly _store: IViewStore | null) {}

  /** The view is another, or the saved ones are. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get view(): IRunsView {
    return this._view;
  }

  /** The names of the saved views, in the order of the alphabet. */
  get names(): readonly string[] {
    return [...this._saved.keys()].sort((one, other) =>
      one.localeCompare(other)
    );
  }

  /** The name of the saved view that is shown as it was saved; null for none. */
  get current(): string | null {
    const now = JSON.stringify(keptView(this._view));
    const found = [...this._saved].find(
      ([, view]) => JSON.stringify(keptView(view)) === now
    );
    return found?.[0] ?? null;
  }

  /** Read what was kept. */
  async load(): Promise<void> {
    const kept: unknown = await this._store?.fetch(KEY).catch(() => undefined);
    if (!isRecord(kept)) {
      return;
    }
    if (isRecord(kept.view) && this._view === FIRST_VIEW) {
      this._view = viewOf(kept.view);
    }
    if (isRecord(kept.saved)) {
      for (const [name, view] of Object.entries(kept.saved)) {
        if (isRecord(view) && !this._saved.has(name)) {
          this._saved.set(name, viewOf(view));
        }
      }
    }
    this._changed.emit();
  }

  /** Show the runs in another way. */
  show(view: IRunsView): void {
    this._view = view;
    this._keep();
  }

  /** Show the runs as it was saved. */
  open(name: string): void {
    this.show(this._saved.get(name) ?? FIRST_VIEW);
  }

  /** Save the view under a name, in place of another of that name. */
  save(name: string): void {
    this._saved.set(name, this._view);
    this._keep();
  }

  remove(name: string): void {
    this._saved.delete(name);
    this._keep();
  }

  private _keep(): void {
    this._changed.emit();
    const kept: ReadonlyPartialJSONValue = {
      view: keptView(this._view),
      saved: Object.fromEntries(
        [...this._saved].map(([name, view]) => [name, keptView(view)])
      )
    };
    // Without it the page works as well.
    void this._store?.save(KEY, kept).catch(() => undefined);
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _saved = new Map<string, IRunsView>();
  private _view: IRunsView = FIRST_VIEW;
}
