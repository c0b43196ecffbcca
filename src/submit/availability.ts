import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import type { Schema } from '../api';
import { IClusterClient } from '../clusters/client';
import { FRESH_MS } from './starting';

type IOverview = Schema<'ClusterOverview'>;

/**
 * What is free on each cluster. It is read when the form opens, and again when the user changes something and the answer is old: no timer asks a scheduler.
 */
export class Availability implements IDisposable {
  constructor(client: Pick<IClusterClient, 'overview'>) {
    this._client = client;
  }

  /** An answer came. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      Signal.clearData(this);
    }
  }

  /** The last answer of a cluster; null when there is none. */
  of(cluster: string | null): IOverview | null {
    return (cluster !== null && this._known.get(cluster)?.overview) || null;
  }

  /** How old that is, in milliseconds. */
  age(cluster: string | null): number {
    const known = cluster === null ? undefined : this._known.get(cluster);
    if (!known) {
      return Infinity;
    }
    // The server's clock may be ahead of the browser's.
    return Date.now() - Math.min(known.at, Date.parse(known.overview.as_of));
  }

  /**
   * Read it, unless there is an answer that is not old. A cluster that does not answer shows nothing: the preview tells why.
   *
   * @param refresh - ask the scheduler, instead of the server's cache
   */
  async renew(cluster: string | null, refresh: boolean): Promise<void> {
    if (
      cluster === null ||
      this._asked.has(cluster) ||
      this.age(cluster) < FRESH_MS
    ) {
      return;
    }
    this._asked.add(cluster);
    try {
      const overview = await this._client.overview(cluster, refresh);
      this._known.set(cluster, { overview, at: Date.now() });
    } catch {
      return;
    } finally {
      this._asked.delete(cluster);
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _client: Pick<IClusterClient, 'overview'>;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _known = new Map<
    string,
    { readonly overview: IOverview; readonly at: number }
  >();
  private readonly _asked = new Set<string>();
  private _isDisposed = false;
}
