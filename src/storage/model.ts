import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IStorageClient } from './client';
import { IStorage } from './types';

/** Looking costs calls of AWS, and little of it changes. */
const FRESH_MS = 300_000;

/**
 * The storage of the server's machine, read when it is visible.
 */
export class StorageModel implements IDisposable {
  constructor(client: IStorageClient) {
    this._client = client;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What there is; null before it was read. */
  get storage(): IStorage | null {
    return this._storage;
  }

  /** Why it can't be read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Somebody looks at it. */
  look(): void {
    if (Date.now() - this._readAt > FRESH_MS) {
      void this.refresh();
    }
  }

  /** Read it again; a running request is awaited. */
  refresh(): Promise<void> {
    this._reading ??= this._read().finally(() => {
      this._reading = null;
    });
    return this._reading;
  }

  private async _read(): Promise<void> {
    try {
      this._storage = await this._client.overview();
      this._readAt = Date.now();
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _client: IStorageClient;
  private readonly _changed = new Signal<this, void>(this);
  private _storage: IStorage | null = null;
  private _error: ApiError | null = null;
  private _reading: Promise<void> | null = null;
  private _readAt = -Infinity;
  private _isDisposed = false;
}
