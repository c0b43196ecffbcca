import { URLExt } from '@jupyterlab/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { HyperPodClient, Schema } from '../api';
import { ILogAttempt, ILogFrame, ILogHits, ILogPage } from './types';
import { ILogRequest } from './types';
import { ILogHandler, LogSocket, SocketState } from './socket';

/**
 * Which page of a log: backward from a cursor (or from the end), or forward from one.
 */
export interface IPageRequest extends ILogRequest {
  readonly direction: 'backward' | 'forward';
  readonly cursor?: string;
  readonly limit: number;
}

/**
 * What to look for, and from where on.
 */
export interface ISearchRequest extends ILogRequest {
  readonly grep: string;
  readonly ignoreCase?: boolean;
  readonly cursor?: string;
  readonly limit?: number;
}

/**
 * Everything that the log viewer asks of the server; tests give it one of their own.
 */
export interface ILogClient {
  /** New lines can come in (or nobody waits for any). */
  readonly connected: boolean;
  /** That changed. */
  readonly connectionChanged: ISignal<ILogClient, boolean>;
  /** A page of the log. */
  page(request: IPageRequest): Promise<ILogPage>;
  /** Lines that match. */
  search(request: ISearchRequest, signal?: AbortSignal): Promise<ILogHits>;
  /** What can be chosen. */
  streams(runId: string): Promise<readonly ILogAttempt[]>;
  /** Where one stream's exact bytes can be had; left out where they can't. */
  rawUrl?(runId: string, stream: IRawStream): string;
  /** Follow from a cursor on, until the subscription is disposed of. */
  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable;
}

/**
 * Names one stream.
 */
export interface IRawStream {
  readonly attempt: number;
  readonly rank: number | null;
  readonly nodeRank: number;
}

/** The most lines that the server gives in a page. */
export const MAX_PAGE = 2000;

export type { ILogHandler, ILogFrame };

/**
 * The client of the server extension's log routes: pages by HTTP, live frames by the page's one socket.
 */
export class LogClient implements ILogClient {
  constructor(client: HyperPodClient, socket: LogSocket) {
    this._client = client;
    this._socket = socket;
    socket.stateChanged.connect(this._onState, this);
  }

  get connected(): boolean {
    return this._connected;
  }

  get connectionChanged(): ISignal<this, boolean> {
    return this._connectionChanged;
  }

  page(request: IPageRequest): Promise<ILogPage> {
    return this._client.get(path(request.runId, 'logs'), {
      query: {
        ...queryOf(request),
        cursor: request.cursor,
        direction: request.direction,
        limit: request.limit
      } satisfies Partial<Record<keyof Schema<'PageQuery'>, unknown>>
    });
  }

  search(request: ISearchRequest, signal?: AbortSignal): Promise<ILogHits> {
    return this._client.get(path(request.runId, 'logs/search'), {
      query: {
        ...queryOf(request),
        grep: request.grep,
        ignore_case: request.ignoreCase || undefined,
        cursor: request.cursor,
        limit: request.limit
      } satisfies Partial<Record<keyof Schema<'SearchQuery'>, unknown>>,
      signal
    });
  }

  async streams(runId: string): Promise<readonly ILogAttempt[]> {
    const found = await this._client.get<Schema<'Streams'>>(
      path(runId, 'streams')
    );
    return found.attempts;
  }

  rawUrl(runId: string, stream: IRawStream): string {
    const { attempt, nodeRank, rank } = stream;
    const query: Schema<'RawQuery'> =
      rank === null ? { attempt, node: nodeRank } : { attempt, rank };
    return this._client.link(path(runId, 'logs/raw'), query);
  }

  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    return this._socket.subscribe(request, cursor, handler);
  }

  private _onState(_: LogSocket, state: SocketState): void {
    // The first moments of a connection are no news.
    const connected =
      state === 'connecting' ? this._connected : state !== 'waiting';
    if (connected !== this._connected) {
      this._connected = connected;
      this._connectionChanged.emit(connected);
    }
  }

  private readonly _connectionChanged = new Signal<this, boolean>(this);
  private _connected = true;
  private readonly _client: HyperPodClient;
  private readonly _socket: LogSocket;
}

function path(runId: string, rest: string): string {
  return URLExt.join('runs', encodeURIComponent(runId), rest);
}

function queryOf(request: ILogRequest) {
  const { attempt, node, nodeLogs, ranks } = request;
  return { attempt, node, ranks: ranks?.join(','), node_logs: nodeLogs };
}
