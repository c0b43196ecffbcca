import { URLExt } from '@jupyterlab/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { HyperPodClient, IRequestOptions, Schema } from '../api';
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
 * Where a log is had: pages and hits by HTTP, new lines by the page's one socket.
 */
export interface ILogPlace {
  readonly page: string;
  readonly search: string;
  /** What says which lines, in every query. */
  readonly query: IRequestOptions['query'];
}

/**
 * Reads logs of one kind from the server extension.
 */
export abstract class ServerLogs implements ILogClient {
  constructor(
    protected readonly client: HyperPodClient,
    protected readonly socket: LogSocket
  ) {
    socket.stateChanged.connect(this._onState, this);
  }

  get connected(): boolean {
    return this._connected;
  }

  get connectionChanged(): ISignal<this, boolean> {
    return this._connectionChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  abstract streams(runId: string): Promise<readonly ILogAttempt[]>;

  abstract follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable;

  /** Where lines are. */
  protected abstract place(
    request: ILogRequest
  ): ILogPlace | Promise<ILogPlace>;

  async page(request: IPageRequest): Promise<ILogPage> {
    const { page, query } = await this.place(request);
    const { cursor, direction, limit } = request;
    return this.client.get(page, {
      query: { ...query, cursor, direction, limit }
    });
  }

  async search(
    request: ISearchRequest,
    signal?: AbortSignal
  ): Promise<ILogHits> {
    const { search, query } = await this.place(request);
    const { cursor, grep, limit } = request;
    const ignoreCase = request.ignoreCase || undefined;
    return this.client.get(search, {
      query: { ...query, grep, ignore_case: ignoreCase, cursor, limit },
      signal
    });
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
  private _isDisposed = false;
}

/**
 * Logs of runs.
 */
export class LogClient extends ServerLogs {
  async streams(runId: string): Promise<readonly ILogAttempt[]> {
    const found = await this.client.get<Schema<'Streams'>>(
      path(runId, 'streams')
    );
    return found.attempts;
  }

  rawUrl(runId: string, stream: IRawStream): string {
    const { attempt, nodeRank, rank } = stream;
    const query: Schema<'RawQuery'> =
      rank === null ? { attempt, node: nodeRank } : { attempt, rank };
    return this.client.link(path(runId, 'logs/raw'), query);
  }

  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    const { attempt, node, nodeLogs, ranks, runId } = request;
    return this.socket.subscribe(
      { run_id: runId, attempt, node, ranks, node_logs: nodeLogs },
      cursor,
      handler
    );
  }

  protected place(request: ILogRequest): ILogPlace {
    const { attempt, node, nodeLogs, ranks, runId } = request;
    return {
      page: path(runId, 'logs'),
      search: path(runId, 'logs/search'),
      query: { attempt, node, ranks: ranks?.join(','), node_logs: nodeLogs }
    };
  }
}

function path(runId: string, rest: string): string {
  return URLExt.join('runs', encodeURIComponent(runId), rest);
}
