import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';
import * as React from 'react';

import { Watched } from '../components/watched';
import type { IWatched } from '../components/watchingWidget';
import { IClusterClient } from './client';
import type { ClusterStore } from './store';
import { ICluster, IClusterDetail } from './types';

/**
 * One cluster while its page is in view: its row of the store, and what AWS tells of it.
 */
export class ClusterView implements IWatched {
  constructor(
    readonly client: IClusterClient,
    readonly cluster: string,
    private readonly _store: ClusterStore
  ) {
    this._detail = new Watched(refresh => client.cluster(cluster, refresh));
    _store.changed.connect(this._onChange, this);
    this._detail.changed.connect(this._onChange, this);
  }

  /** Something that is shown changed, or was read again. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The user wants all that is shown as it is now. */
  get refreshed(): ISignal<this, void> {
    return this._refreshed;
  }

  /** The cluster; null before it is known. */
  get row(): ICluster | null {
    const row = this._store.find(this.cluster);
    const detail = this._detail.value?.cluster ?? null;
    // The store knows what AWS tells only while the panel is in view.
    return row === null
      ? detail
      : { ...row, hyperpod: row.hyperpod ?? detail?.hyperpod ?? null };
  }

  /** The cluster with all that AWS tells of it, and why that can't be read. */
  get detail(): Watched<IClusterDetail> {
    return this._detail;
  }

  /** When the scheduler was asked; AWS, where there is none. */
  get asOf(): string | null {
    return this.row?.as_of ?? this._detail.value?.as_of ?? null;
  }

  /** Differs once the scheduler or AWS was asked again. */
  get stamp(): string {
    const { changing, loading } = { changing: false, ...this._detail.value };
    return [this.asOf, this.row?.state, changing, loading].join(' ');
  }

  get isDisposed(): boolean {
    return this._detail.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.stop();
      this._store.changed.disconnect(this._onChange, this);
      this._detail.dispose();
      Signal.clearData(this);
    }
  }

  start(): void {
    this._watcher ??= this._store.watch();
    this._detail.start();
  }

  stop(): void {
    this._watcher?.dispose();
    this._watcher = null;
    this._detail.stop();
  }

  /** Ask the scheduler and AWS now, past all caches; while they are being asked, wait for that. */
  async refresh(): Promise<void> {
    this._refreshing ??= this._refresh().finally(() => {
      this._refreshing = null;
    });
    await this._refreshing;
  }

  private async _refresh(): Promise<void> {
    this._refreshed.emit();
    await this._detail.refreshNow();
    await this._store.renew();
  }

  private _onChange(): void {
    this._changed.emit();
  }

  private readonly _detail: Watched<IClusterDetail>;
  private readonly _refreshed = new Signal<this, void>(this);
  private readonly _changed = new Signal<this, void>(this);
  private _refreshing: Promise<void> | null = null;
  private _watcher: IDisposable | null = null;
}

/**
 * Calls `renew` whenever the scheduler or AWS was asked again.
 */
export function useLive(
  view: ClusterView | undefined,
  renew: () => void
): void {
  const latest = React.useRef(renew);
  latest.current = renew;
  React.useEffect(() => {
    if (!view) {
      return;
    }
    let stamp = view.stamp;
    const check = () => {
      if (view.stamp !== stamp) {
        stamp = view.stamp;
        latest.current();
      }
    };
    view.changed.connect(check);
    return () => {
      view.changed.disconnect(check);
    };
  }, [view]);
}

/**
 * Calls `again` when the user refreshes the cluster's page.
 */
export function useRefresh(
  view: ClusterView | undefined,
  again: () => void
): void {
  const latest = React.useRef(again);
  latest.current = again;
  React.useEffect(() => {
    const refresh = () => latest.current();
    view?.refreshed.connect(refresh);
    return () => {
      view?.refreshed.disconnect(refresh);
    };
  }, [view]);
}
