import { Event } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { IWatched } from '../components/watchingWidget';
import { IAdminClient } from './client';
import { AdminRights } from './rights';
import { IAsked, IChoices, IWork } from './types';

/** The schema of the server's events on plans. */
export const ADMIN_EVENT = 'https://hyperpod-jlab.dev/events/admin/v1';

/** Events say what changes; this only mends what they missed. */
const MEND_MS = 10_000;

const BUSY = ['planning', 'checking', 'applying', 'stopping'];

/**
 * The server's newest plan for a Studio domain, read while somebody looks: whenever an event says that it has something new.
 */
export class AdminModel implements IWatched {
  constructor(
    client: IAdminClient,
    rights: AdminRights,
    events: ISignal<unknown, Event.Emission>,
    mend = MEND_MS
  ) {
    this.client = client;
    this.rights = rights;
    this._events = events;
    this._mend = mend;
    events.connect(this._onEvent, this);
    rights.changed.connect(this._onRights, this);
  }

  readonly client: IAdminClient;
  readonly rights: AdminRights;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What was read last; null before that. */
  get work(): IWork | null {
    return this._work;
  }

  /** What can be chosen; null before it was read. */
  get choices(): IChoices | null {
    return this._choices;
  }

  /** Why something could not be done or read, if so. */
  get error(): ApiError | null {
    return this._error;
  }

  /** Why it is not known what can be chosen, if so. */
  get choicesError(): ApiError | null {
    return this._choicesError;
  }

  /** Whether something goes on. */
  get isBusy(): boolean {
    return BUSY.includes(this._work?.state ?? 'none');
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this.stop();
      this._isDisposed = true;
      this._events.disconnect(this._onEvent, this);
      this.rights.changed.disconnect(this._onRights, this);
      Signal.clearData(this);
    }
  }

  /** Somebody looks. */
  start(): void {
    if (!this._isShown && !this._isDisposed) {
      this._isShown = true;
      void this._begin();
    }
  }

  /** Nobody looks for now. */
  stop(): void {
    this._isShown = false;
    clearTimeout(this._timer);
  }

  /** Ask again for what is not there. */
  refresh(): void {
    void this._begin();
  }

  /** Begin to plan. */
  plan(asked: IAsked): Promise<void> {
    return this._do(() => this.client.plan(asked));
  }

  /** Do what the plan of an id says. */
  async apply(plan: string): Promise<void> {
    await this._do(() => this.client.apply(plan));
    // It is another plan by now, perhaps: that one is to be seen.
    if (this._error?.status === 409) {
      const { error } = this;
      await this._read();
      this._error = error;
      this._changed.emit();
    }
  }

  /** Begin no further step. */
  cancel(): Promise<void> {
    return this._do(() => this.client.cancel());
  }

  private async _begin(): Promise<void> {
    await this.rights.ask();
    if (!this.rights.offered || this._isDisposed) {
      return;
    }
    await Promise.all([this._read(), this._choose()]);
  }

  private async _choose(): Promise<void> {
    if (this._choices !== null) {
      return;
    }
    try {
      this._choices = await this.client.choices();
      this._choicesError = null;
    } catch (reason) {
      this._choicesError = ApiError.of(reason);
    }
    this._tell();
  }

  private async _read(): Promise<void> {
    if (this._reading) {
      this._isStale = true;
      await this._reading;
      return;
    }
    do {
      this._isStale = false;
      this._reading = this._do(() => this.client.read());
      await this._reading;
      this._reading = null;
    } while (this._isStale && this._isShown);
    clearTimeout(this._timer);
    if (this._isShown && this.isBusy) {
      this._timer = setTimeout(() => void this._read(), this._mend);
    }
  }

  private async _do(ask: () => Promise<IWork>): Promise<void> {
    try {
      const found = await ask();
      // Answers may overtake each other, but for those of a server that began anew.
      const known = this._work;
      if (
        known?.number !== found.number ||
        known.begunAt !== found.begunAt ||
        known.version <= found.version
      ) {
        this._work = found;
      }
      this._error = null;
    } catch (reason) {
      this._error = ApiError.of(reason);
    }
    this._tell();
  }

  private _tell(): void {
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private _onRights(): void {
    this._tell();
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id === ADMIN_EVENT && this._isShown) {
      void this._read();
    }
  }

  private readonly _events: ISignal<unknown, Event.Emission>;
  private readonly _mend: number;
  private readonly _changed = new Signal<this, void>(this);
  private _work: IWork | null = null;
  private _choices: IChoices | null = null;
  private _error: ApiError | null = null;
  private _choicesError: ApiError | null = null;
  private _reading: Promise<void> | null = null;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isStale = false;
  private _isShown = false;
  private _isDisposed = false;
}
