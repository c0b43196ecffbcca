import { URLExt } from '@jupyterlab/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { HyperPodClient, Schema } from '../api';
import { ILogPlace, ServerLogs } from '../logs/client';
import { ILogHandler, LogSocket } from '../logs/socket';
import { ILogAttempt, ILogRequest } from '../logs/types';

/** A log of a node, or of a deep health check. */
export type INodeLog = Schema<'HyperpodNodeLog'>;

/** Deep health checks that are offered. */
const MOST_CHECKS = 50;

/**
 * Logs of a node of a HyperPod cluster, which CloudWatch has; or another log of the cluster that was chosen.
 */
export class NodeLogClient extends ServerLogs {
  constructor(
    client: HyperPodClient,
    socket: LogSocket,
    private readonly cluster: string,
    private readonly node: string
  ) {
    super(client, socket);
    this._path = URLExt.join('clusters', encodeURIComponent(cluster));
  }

  /** It is known which logs there are, or another one is chosen. */
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

  /** The kind of a log of the node's own; null for others. */
  kindOf(stream: string): string | null {
    return this._logs?.find(log => log.stream === stream)?.kind ?? null;
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
    _: ILogRequest,
    cursor: string | undefined,
    handler: ILogHandler
  ): IDisposable {
    // The viewer follows behind a page that it has, so it is known which logs.
    const { cluster } = this;
    const streams = this._names() ?? [];
    return this.socket.subscribe({ cluster, streams }, cursor, handler);
  }

  protected async place(): Promise<ILogPlace> {
    if (this._names() === null) {
      const node = encodeURIComponent(this.node);
      this._logs = await this._list(`nodes/${node}/logs`);
      this._changed.emit();
    }
    return {
      page: URLExt.join(this._path, 'logs/page'),
      search: URLExt.join(this._path, 'logs/search'),
      query: { streams: this._names() ?? [] }
    };
  }

  private async _list(
    path: string,
    query: Schema<'NodeLogsQuery'> = {}
  ): Promise<readonly INodeLog[]> {
    const found = await this.client.get<Schema<'HyperpodNodeLogs'>>(
      URLExt.join(this._path, path),
      { query }
    );
    return found.logs;
  }

  /** The names of the chosen logs; null before they are known. */
  private _names(): readonly string[] | null {
    return this._chosen !== null
      ? [this._chosen]
      : (this._logs?.map(log => log.stream) ?? null);
  }

  private readonly _path: string;
  private readonly _changed = new Signal<this, void>(this);
  private _logs: readonly INodeLog[] | null = null;
  private _chosen: string | null = null;
}
