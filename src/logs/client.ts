import { URLExt } from '@jupyterlab/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { HyperPodClient, IRequestOptions, Schema } from '../api';
import {
  ILogAttempt,
  ILogFrame,
  ILogHistogram,
  ILogHits,
  ILogPage,
  ILogRequest
} from './types';
import { ILogHandler, LogSocket, SocketState } from './socket';

/**
 * Which page of a log: backward from a cursor (or from the end), or forward from one.
 */
export interface IPageRequest extends ILogRequest {
  readonly direction: 'backward' | 'forward';
  readonly cursor?: string;
  /** Forward without a cursor: from the first line written at this Unix time (in seconds) or later. */
  readonly since?: number;
  readonly limit: number;
}

/**
 * What to look for, and from where on.
 */
export interface ISearchRequest extends ILogRequest {
  readonly cursor?: string;
  readonly limit?: number;
}

/**
 * Everything that the log viewer asks of the server; tests give it one of their own.
 */
export interface ILogClient {
  /** New lines can arrive (or nothing waits for any). */
  readonly connected: boolean;
  /** That changed. */
  readonly connectionChanged: ISignal<ILogClient, boolean>;
  /** A page of the log. */
  page(request: IPageRequest): Promise<ILogPage>;
  /** Lines that match. */
  search(request: ISearchRequest, signal?: AbortSignal): Promise<ILogHits>;
  /** How much was written when, and when lines match; left out where that is not known. */
  histogram?(request: ILogRequest): Promise<ILogHistogram>;
  /** What can be chosen. */
  streams(runId: string): Promise<readonly ILogAttempt[]>;
  /** Where one stream's exact bytes can be had; left out where they can't. */
  rawUrl?(runId: string, stream: IRawStream): string;
  /** Where lines are as one file, those of all ranks sorted by time; left out where they can't be had so. */
  downloadUrl?(request: ILogRequest): string;
  /** Where an archive with each log's exact bytes is; left out where there is none. */
  archiveUrl?(request: ILogRequest): string;
  /** Pages and new lines can be those that match; left out where they can't. */
  readonly filters?: boolean;
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
    const { cursor, direction, limit, since } = request;
    return this.client.get(page, {
      query: {
        ...query,
        ...grepQuery(request),
        cursor,
        direction,
        limit,
        since
      }
    });
  }

  async search(
    request: ISearchRequest,
    signal?: AbortSignal
  ): Promise<ILogHits> {
    const { search, query } = await this.place(request);
    const { cursor, limit } = request;
    return this.client.get(search, {
      query: { ...query, ...grepQuery(request), cursor, limit },
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
  readonly filters = true;

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

  histogram(request: ILogRequest): Promise<ILogHistogram> {
    const query = { ...this.place(request).query, ...grepQuery(request) };
    return this.client.get(path(request.runId, 'logs/histogram'), { query });
  }

  downloadUrl(request: ILogRequest): string {
    const query = { ...this.place(request).query, ...grepQuery(request) };
    return this.client.link(path(request.runId, 'logs/download'), query);
  }

  archiveUrl(request: ILogRequest): string {
    const query = { ...this.place(request).query, format: 'zip' };
    return this.client.link(path(request.runId, 'logs/download'), query);
  }

  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    const { attempt, node, nodeLogs, ranks, runId } = request;
    return this.socket.subscribe(
      {
        run_id: runId,
        attempt,
        node,
        ranks,
        node_logs: nodeLogs,
        ...grepQuery(request)
      },
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

/** Which lines match, on the wire. */
function grepQuery(request: ILogRequest): {
  grep?: string;
  ignore_case?: boolean;
} {
  const { grep, ignoreCase } = request;
  return { grep, ignore_case: ignoreCase };
}

function path(runId: string, rest: string): string {
  return URLExt.join('runs', encodeURIComponent(runId), rest);
}
