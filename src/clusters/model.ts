import { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IClusterClient } from './client';
import { ICluster } from './types';

const POLL_MS = 60_000;

/**
 * The clusters of the configuration, looked at now and then once somebody wants to see them.
 */
export class ClustersModel implements IDisposable {
  constructor(client: IClusterClient, interval = POLL_MS) {
    this._client = client;
    this._poll = new Poll({
      auto: false,
      name: 'hyperpod_jlab:clusters',
      factory: () => this._load(),
      frequency: { interval, backoff: true, max: 10 * interval },
      standby: 'when-hidden'
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The clusters; null before they were read. */
  get clusters(): readonly ICluster[] | null {
    return this._clusters;
  }

  /** Why they can't be read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._poll.dispose();
      Signal.clearData(this);
    }
  }

  /** Begin to keep the list, or go on. */
  start(): void {
    if (!this._started && !this.isDisposed) {
      this._started = true;
      void this._poll.start();
    }
  }

  /** Nobody looks at it for now. */
  stop(): void {
    if (this._started && !this.isDisposed) {
      this._started = false;
      void this._poll.stop();
    }
  }

  /** Read the list anew. */
  refresh(): void {
    void this._poll.refresh();
  }

  private async _load(): Promise<void> {
    try {
      this._clusters = await this._client.list();
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
      throw this._error;
    } finally {
      if (!this.isDisposed) {
        this._changed.emit();
      }
    }
  }

  private readonly _client: IClusterClient;
  private readonly _poll: Poll;
  private readonly _changed = new Signal<this, void>(this);
  private _clusters: readonly ICluster[] | null = null;
  private _error: ApiError | null = null;
  private _started = false;
}
