import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, Schema } from '../api';
import { Backoff } from './backoff';
import { ILogFrame } from './types';

/**
 * As much of a WebSocket as is used here.
 */
export interface ISocketLike {
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
  send(data: string): void;
  close(): void;
}

/**
 * Takes what comes in on a subscription.
 */
export interface ILogHandler {
  /** Lines have come. Call `taken` once they are shown; the server sends a few frames ahead and then waits. */
  frame(frame: ILogFrame, taken: () => void): void;
  /** The run has ended and all of its log was sent. */
  end(): void;
  /** The subscription is over. */
  error(error: ApiError): void;
}

/** Whether lines can come in: `waiting` is the pause before the next try. */
export type SocketState = 'idle' | 'connecting' | 'open' | 'waiting';

/** Messages to the server. */
type Said = Schema<'Subscribe'> | Schema<'Unsubscribe'> | Schema<'Ack'>;

/** What the server says. */
type Heard =
  Schema<'Subscribed'> | Schema<'Frame'> | Schema<'End'> | Schema<'Failure'>;

/** Which log is followed, and which lines of it. */
export type Followed = Omit<Schema<'Subscribe'>, 'type' | 'id' | 'cursor'>;

interface ISubscription {
  readonly id: number;
  readonly log: Followed;
  readonly handler: ILogHandler;
  cursor: string | undefined;
}

/**
 * The one WebSocket of a page, for any number of followed logs.
 *
 * It is open while there is a subscription. When it breaks it reconnects, and each subscription continues after
 * the last frame that its handler was given, so that no line is lost and none comes twice.
 */
export class LogSocket implements IDisposable {
  constructor(options: LogSocket.IOptions) {
    this._connect = options.connect;
    this._backoff = new Backoff(options.backoff);
  }

  /** The connection came or went. */
  get stateChanged(): ISignal<this, SocketState> {
    return this._stateChanged;
  }

  get state(): SocketState {
    return this._state;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._subscriptions.clear();
      this._drop();
      this._setState('idle');
      Signal.clearData(this);
    }
  }

  /**
   * Follow a log.
   *
   * @param log - which lines
   * @param cursor - behind which place; when it is not given, from the first line on
   * @param handler - takes what comes
   * @returns what ends the subscription
   */
  subscribe(
    log: Followed,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    const subscription = { id: ++this._lastId, log, handler, cursor };
    this._subscriptions.set(subscription.id, subscription);
    if (this._state === 'open') {
      this._sendSubscribe(subscription);
    } else if (this._state === 'idle' && !this._isDisposed) {
      this._open();
    }
    return new Unsubscribe(() => this._unsubscribe(subscription.id));
  }

  /**
   * Reconnect at once, whatever the state of the present connection seems to be.
   *
   * After sleep or a change of network a socket may look open for minutes although the other end is gone.
   */
  reconnect(): void {
    if (this._subscriptions.size > 0 && !this._isDisposed) {
      this._drop();
      this._backoff.reset();
      this._open();
    }
  }

  private _open(): void {
    this._setState('connecting');
    const socket = this._connect();
    this._socket = socket;
    socket.onopen = () => {
      this._setState('open');
      this._subscriptions.forEach(item => this._sendSubscribe(item));
    };
    socket.onmessage = event => this._onMessage(socket, event.data);
    socket.onclose = () => {
      this._drop();
      this._retry();
    };
  }

  private _retry(): void {
    if (this._subscriptions.size === 0) {
      this._setState('idle');
      return;
    }
    this._setState('waiting');
    this._timer = setTimeout(() => this._open(), this._backoff.next());
  }

  /** Forget the present connection: nothing that it still says is heard. */
  private _drop(): void {
    clearTimeout(this._timer);
    const socket = this._socket;
    if (socket) {
      this._socket = null;
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
  }

  private _unsubscribe(id: number): void {
    if (!this._subscriptions.delete(id)) {
      return;
    }
    if (this._state === 'open') {
      this._send({ type: 'unsubscribe', id });
    }
    this._closeWhenUnused();
  }

  private _closeWhenUnused(): void {
    if (this._subscriptions.size === 0) {
      this._drop();
      this._setState('idle');
    }
  }

  private _onMessage(socket: ISocketLike, data: unknown): void {
    const message = JSON.parse(String(data)) as Heard;
    const subscription = this._subscriptions.get(message.id ?? NaN);
    if (!subscription) {
      if (message.type === 'error') {
        console.warn('The log socket refused a message.', message.error);
      }
      return;
    }
    this._backoff.reset();
    switch (message.type) {
      case 'frame':
        this._onFrame(socket, subscription, message);
        break;
      case 'end':
        this._finish(subscription);
        subscription.handler.end();
        break;
      case 'error':
        this._finish(subscription);
        subscription.handler.error(new ApiError(message.error, null));
        break;
    }
  }

  private _onFrame(
    socket: ISocketLike,
    subscription: ISubscription,
    frame: Schema<'Frame'>
  ): void {
    const { id, seq } = frame;
    subscription.cursor = frame.after;
    subscription.handler.frame(frame, () => {
      // Numbers start again on each connection: one of an old connection must not be sent on another.
      if (this._socket === socket && this._subscriptions.has(id)) {
        this._send({ type: 'ack', id, seq });
      }
    });
  }

  private _finish(subscription: ISubscription): void {
    this._subscriptions.delete(subscription.id);
    this._closeWhenUnused();
  }

  private _sendSubscribe(subscription: ISubscription): void {
    const { id, log, cursor } = subscription;
    this._send({ type: 'subscribe', id, ...log, cursor });
  }

  private _send(message: Said): void {
    this._socket?.send(JSON.stringify(message));
  }

  private _setState(state: SocketState): void {
    if (state !== this._state) {
      this._state = state;
      this._stateChanged.emit(state);
    }
  }

  private readonly _connect: () => ISocketLike;
  private readonly _backoff: Backoff;
  private readonly _subscriptions = new Map<number, ISubscription>();
  private readonly _stateChanged = new Signal<this, SocketState>(this);
  private _socket: ISocketLike | null = null;
  private _state: SocketState = 'idle';
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _lastId = 0;
  private _isDisposed = false;
}

export namespace LogSocket {
  export interface IOptions {
    /** Opens a connection. */
    connect: () => ISocketLike;
    /** How long to wait between tries. */
    backoff?: Backoff.IOptions;
  }
}

class Unsubscribe implements IDisposable {
  constructor(act: () => void) {
    this._act = act;
  }

  get isDisposed(): boolean {
    return this._act === null;
  }

  dispose(): void {
    const act = this._act;
    this._act = null;
    act?.();
  }

  private _act: (() => void) | null;
}
