import { URLExt } from '@jupyterlab/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, HyperPodClient, Schema } from '../api';
import { ILogClient, IPageRequest, ISearchRequest } from '../logs/client';
import { ILogHandler } from '../logs/socket';
import {
  ILogAttempt,
  ILogHits,
  ILogOrigin,
  ILogPage,
  ILogRequest
} from '../logs/types';
import { Follower, IPace } from './follower';

/** A log of a node, or of a deep health check. */
export type INodeLog = Schema<'HyperpodNodeLog'>;

/** Lines that are asked for at a time while a log is followed. */
const FOLLOW_LIMIT = 1000;

/** Deep health checks that are offered. */
const MOST_CHECKS = 50;

/**
 * Gives the log viewer the logs of a node of a HyperPod cluster, which CloudWatch has: what it would ask of a run's log, asked of those that are chosen.
 */
export class NodeLogClient implements ILogClient, IDisposable {
  constructor(options: NodeLogClient.IOptions) {
    this._options = options;
    this._path = URLExt.join('clusters', encodeURIComponent(options.cluster));
  }

  /** Something else than the lines changed: which logs there are, what it costs, whether there is an answer. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The node's own logs; null before they are known. */
  get logs(): readonly INodeLog[] | null {
    return this._logs;
  }

  /** The chosen log, by its name; null: all of the node's own. */
  get chosen(): string | null {
    return this._chosen;
  }

  set chosen(stream: string | null) {
    this._chosen = stream;
    this._changed.emit();
  }

  /** How often CloudWatch was asked for this log. */
  get calls(): number {
    return this._calls;
  }

  /** Why no new lines come for now. */
  get trouble(): ApiError | null {
    return this._trouble;
  }

  /** The server can be asked: there is no connection that could be lost. */
  readonly connected = true;

  readonly connectionChanged: ISignal<ILogClient, boolean> = new Signal<
    ILogClient,
    boolean
  >(this);

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      Signal.clearData(this);
    }
  }

  async page(request: IPageRequest): Promise<ILogPage> {
    const page = await this._options.client.get<Schema<'NodeLogPage'>>(
      URLExt.join(this._path, 'logs/page'),
      {
        query: {
          streams: await this._streams(),
          cursor: request.cursor,
          direction: request.direction,
          limit: request.limit
        } satisfies Schema<'NodePageQuery'>
      }
    );
    this._count(page);
    return {
      ...page,
      frames: page.frames.map(({ after, blocks }) => ({
        after,
        blocks: blocks.map(block => this._labelled(block))
      }))
    };
  }

  async search(
    request: ISearchRequest,
    signal?: AbortSignal
  ): Promise<ILogHits> {
    const found = await this._options.client.get<Schema<'NodeLogHits'>>(
      URLExt.join(this._path, 'logs/search'),
      {
        query: {
          streams: await this._streams(),
          grep: request.grep,
          ignore_case: request.ignoreCase || undefined,
          cursor: request.cursor,
          limit: request.limit
        } satisfies Schema<'NodeSearchQuery'>,
        signal
      }
    );
    this._count(found);
    return { ...found, hits: found.hits.map(hit => this._labelled(hit)) };
  }

  /** There are no ranks to choose. */
  streams(): Promise<readonly ILogAttempt[]> {
    return Promise.resolve([]);
  }

  /** The deep health checks of the cluster, which are of no single node; those that ended last come first. */
  checks(): Promise<readonly INodeLog[]> {
    return this._list('logs', {
      kind: 'deep-health-check',
      limit: MOST_CHECKS
    });
  }

  follow(
    request: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    const read = (from: string) =>
      this.page({
        ...request,
        direction: 'forward',
        cursor: from,
        limit: FOLLOW_LIMIT
      });
    const trouble = (error: ApiError | null) => {
      this._trouble = error;
      this._changed.emit();
    };
    // The viewer follows behind a page that it has, so there is a cursor.
    return new Follower(
      read,
      cursor ?? '',
      handler,
      trouble,
      this._options.pace
    );
  }

  private async _list(
    path: string,
    query: Schema<'NodeLogsQuery'> = {}
  ): Promise<readonly INodeLog[]> {
    const found = await this._options.client.get<Schema<'HyperpodNodeLogs'>>(
      URLExt.join(this._path, path),
      { query }
    );
    return found.logs;
  }

  /** The names of the chosen logs. */
  private async _streams(): Promise<readonly string[]> {
    if (this._chosen !== null) {
      return [this._chosen];
    }
    if (this._logs === null) {
      const node = encodeURIComponent(this._options.node);
      this._logs = await this._list(`nodes/${node}/logs`);
      this._changed.emit();
    }
    return this._logs.map(log => log.stream);
  }

  /** Its lines begin with the word for its log. */
  private _labelled<T extends ILogOrigin>(origin: T): T {
    const known = this._logs?.find(log => log.stream === origin.node);
    return { ...origin, label: this._options.labelOf(known?.kind ?? null) };
  }

  private _count({ calls }: Pick<Schema<'NodeLogPage'>, 'calls'>): void {
    this._calls += calls;
    if (calls > 0) {
      this._changed.emit();
    }
  }

  private readonly _options: NodeLogClient.IOptions;
  private readonly _path: string;
  private readonly _changed = new Signal<this, void>(this);
  private _logs: readonly INodeLog[] | null = null;
  private _chosen: string | null = null;
  private _calls = 0;
  private _trouble: ApiError | null = null;
  private _isDisposed = false;
}

export namespace NodeLogClient {
  export interface IOptions {
    client: HyperPodClient;
    /** The cluster’s name in AWS. */
    cluster: string;
    /** The node’s instance id, or its name in Slurm or Kubernetes. */
    node: string;
    /** The word before lines of a kind of log; null: of none of the node's own. */
    labelOf: (kind: string | null) => string;
    /** How often CloudWatch is asked; tests are in a hurry. */
    pace?: IPace;
  }
}
