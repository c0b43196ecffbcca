import { Event } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IWatched } from '../components/watchingWidget';
import { IAsked, IDoctorClient } from './client';
import { IExamination } from './types';

/** The schema of the server's events on examinations. */
export const DOCTOR_EVENT = 'https://hyperpod-jlab.dev/events/doctor/v1';

/** Events say what changes; this only mends what they missed. */
const MEND_MS = 10_000;

/**
 * The server's examination, read while somebody looks: whenever an event says that it has something new.
 */
export class DoctorModel implements IWatched {
  constructor(
    client: IDoctorClient,
    events: ISignal<unknown, Event.Emission>,
    mend = MEND_MS
  ) {
    this._client = client;
    this._events = events;
    this._mend = mend;
    events.connect(this._onEvent, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What was read last; null before that. */
  get value(): IExamination | null {
    return this._value;
  }

  /** Why something could not be done or read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  get isRunning(): boolean {
    return this._value?.state === 'running';
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this.stop();
      this._isDisposed = true;
      this._events.disconnect(this._onEvent, this);
      Signal.clearData(this);
    }
  }

  /** Somebody looks. */
  start(): void {
    if (!this._isShown && !this._isDisposed) {
      this._isShown = true;
      void this._read();
    }
  }

  /** Nobody looks for now. */
  stop(): void {
    this._isShown = false;
    clearTimeout(this._timer);
  }

  /** Begin an examination. */
  begin(asked: IAsked): Promise<void> {
    return this._do(() => this._client.begin(asked));
  }

  /** Begin the first examination, unless there was one. */
  async beginFirst(asked: IAsked): Promise<void> {
    await this._read();
    if (this._value?.state === 'none') {
      await this.begin(asked);
    }
  }

  /** End the examination that goes on. */
  cancel(): Promise<void> {
    return this._do(() => this._client.cancel());
  }

  /** Read it again. */
  refresh(): void {
    void this._read();
  }

  private async _read(): Promise<void> {
    if (this._reading) {
      this._isStale = true;
      await this._reading;
      return;
    }
    do {
      this._isStale = false;
      this._reading = this._do(() => this._client.read());
      await this._reading;
      this._reading = null;
    } while (this._isStale && this._isShown);
    clearTimeout(this._timer);
    if (this._isShown && this.isRunning) {
      this._timer = setTimeout(() => void this._read(), this._mend);
    }
  }

  private async _do(ask: () => Promise<IExamination>): Promise<void> {
    try {
      const found = await ask();
      // Answers may overtake each other, but for those of a server that began anew.
      const known = this._value;
      if (
        known?.number !== found.number ||
        known.begunAt !== found.begunAt ||
        known.version <= found.version
      ) {
        this._value = found;
      }
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id === DOCTOR_EVENT && this._isShown) {
      void this._read();
    }
  }

  private readonly _client: IDoctorClient;
  private readonly _events: ISignal<unknown, Event.Emission>;
  private readonly _mend: number;
  private readonly _changed = new Signal<this, void>(this);
  private _value: IExamination | null = null;
  private _error: ApiError | null = null;
  private _reading: Promise<void> | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isStale = false;
  private _isShown = false;
  private _isDisposed = false;
}
