import { Event } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { eventOf, HyperPodClient, Schema } from '../api';

/** The schema of the server's events on calls. */
export const AWS_CALLS_EVENT = 'https://hyperpod-jlab.dev/events/aws-calls/v1';

/** While something was asked within the last minute the server has news more often than that. */
const SILENCE_MS = 70_000;

/** What the server asked AWS for in the last minute. */
export type IAwsCalls = Schema<'AwsCalls'>;

const NONE: IAwsCalls = { calls: 0, total: 0, operations: [] };

/**
 * How often the server asks AWS: read once, then as its events tell. Nothing is polled.
 */
export class AwsCallsModel implements IDisposable {
  constructor(
    client: Pick<HyperPodClient, 'get'>,
    events: ISignal<unknown, Event.Emission>,
    silence = SILENCE_MS
  ) {
    this._client = client;
    this._events = events;
    this._silence = silence;
    events.connect(this._onEvent, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get value(): IAwsCalls {
    return this._value;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._events.disconnect(this._onEvent, this);
      clearTimeout(this._timer);
      Signal.clearData(this);
    }
  }

  /** Read what was asked before this page came. */
  async read(): Promise<void> {
    const before = this._value;
    let found: IAwsCalls;
    try {
      found = await this._client.get('aws/calls');
    } catch {
      // A server that is away asks for nothing; that it is away is said elsewhere.
      found = { ...NONE, total: before.total };
    }
    if (before === this._value) {
      this._take(found);
    }
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id === AWS_CALLS_EVENT) {
      const { calls, operations, total } = eventOf<'AwsCalls'>(event);
      this._take({ calls, operations, total });
    }
  }

  private _take(value: IAwsCalls): void {
    if (this._isDisposed) {
      return;
    }
    this._value = value;
    clearTimeout(this._timer);
    if (value.calls > 0) {
      // The server may have gone away meanwhile.
      this._timer = setTimeout(() => void this.read(), this._silence);
    }
    this._changed.emit();
  }

  private readonly _client: Pick<HyperPodClient, 'get'>;
  private readonly _events: ISignal<unknown, Event.Emission>;
  private readonly _silence: number;
  private readonly _changed = new Signal<this, void>(this);
  private _value = NONE;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isDisposed = false;
}
