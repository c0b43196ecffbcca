import { Event } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IWatched } from './watchingWidget';

/** Events say what changes; this only mends what they missed. */
const MEND_MS = 10_000;

/**
 * The state of a task of the server. Each answer has a version, which grows until a task with another number begins.
 */
export interface IServerWork {
  readonly number: number;
  readonly version: number;
  readonly state: string;
  readonly begun_at: string | null;
}

/**
 * A task of the server, read while the widget is visible: when an event announces news, and at intervals while the task runs.
 */
export abstract class ServerWork<T extends IServerWork> implements IWatched {
  constructor(options: ServerWork.IOptions) {
    const { events, mend, schema } = options;
    this._events = events;
    this._schema = schema;
    this._mend = mend ?? MEND_MS;
    events.connect(this._onEvent, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What was read last; null before that. */
  get value(): T | null {
    return this._value;
  }

  /** Why something could not be done or read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Whether it goes on. */
  abstract get isBusy(): boolean;

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
      this.refresh();
    }
  }

  /** Nobody looks for now. */
  stop(): void {
    this._isShown = false;
    clearTimeout(this._timer);
  }

  /** Read it again. */
  refresh(): void {
    void this.look();
  }

  /** Ask the server how it is. */
  protected abstract read(): Promise<T>;

  /** Read it; while that goes on already, once more after it. */
  protected async look(): Promise<void> {
    if (this._reading) {
      this._isStale = true;
      await this._reading;
      return;
    }
    do {
      this._isStale = false;
      this._reading = this.ask(() => this.read());
      await this._reading;
      this._reading = null;
    } while (this._isStale && this._isShown);
    clearTimeout(this._timer);
    if (this._isShown && this.isBusy) {
      this._timer = setTimeout(() => void this.look(), this._mend);
    }
  }

  /** Ask the server for something that it answers with the work. */
  protected async ask(asking: () => Promise<T>): Promise<void> {
    try {
      const found = await asking();
      // Answers may overtake each other, except those of a restarted server.
      const known = this._value;
      if (
        known?.number !== found.number ||
        known.begun_at !== found.begun_at ||
        known.version <= found.version
      ) {
        this._value = found;
      }
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    this.tell();
  }

  /** Let this be seen, whatever is read. */
  protected keep(error: ApiError): void {
    this._error = error;
    this.tell();
  }

  /** Say that something has changed. */
  protected tell(): void {
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id === this._schema && this._isShown) {
      void this.look();
    }
  }

  private readonly _events: ISignal<unknown, Event.Emission>;
  private readonly _schema: string;
  private readonly _mend: number;
  private readonly _changed = new Signal<this, void>(this);
  private _value: T | null = null;
  private _error: ApiError | null = null;
  private _reading: Promise<void> | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isStale = false;
  private _isShown = false;
  private _isDisposed = false;
}

/**
 * A namespace for statics of `ServerWork`.
 */
export namespace ServerWork {
  export interface IOptions {
    readonly events: ISignal<unknown, Event.Emission>;
    /** The schema of the events that say that it has something new. */
    readonly schema: string;
    /** From one reading to the next while it goes on, in milliseconds. */
    readonly mend?: number;
  }
}
