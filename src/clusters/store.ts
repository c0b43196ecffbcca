import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../api';
import { Polled } from '../components/polled';
import { Watched } from '../components/watched';
import type { RegionChoice } from './regions';
import { IClusterClient } from './client';
import { ICluster, IClusterPage } from './types';

/** The server asks a scheduler less often while nothing happens. */
const POLL_MS = 2500;

/** Unconfigured clusters that are listed at first, and that come with each `more`. */
const STEP = 100;

/** The configured clusters, as their schedulers know them. */
class ConfiguredClusters extends Polled<readonly ICluster[]> {
  constructor(
    private readonly _client: IClusterClient,
    interval: number
  ) {
    super({ name: 'clusters', interval, linger: 0 });
  }

  forced = false;

  /** Read them again, and wait for that. */
  async reread(refresh: boolean): Promise<void> {
    this.forced ||= refresh;
    await this.readNow();
  }

  protected async read(): Promise<readonly ICluster[]> {
    const refresh = this.forced;
    this.forced = false;
    return this._client.configured(refresh);
  }
}

/**
 * The clusters, for the panel, their pages and their tables. One poll serves all of them. It stops while none of them is visible.
 */
export class ClusterStore implements IDisposable {
  constructor(options: ClusterStore.IOptions) {
    const { client, regions } = options;
    this._regions = regions;
    this._configured = new ConfiguredClusters(
      client,
      options.interval ?? POLL_MS
    );
    this._aws = new Watched(
      refresh =>
        client.list({ limit: this._limit, region: regions.chosen, refresh }),
      options.awsTimes
    );
    this._configured.changed.connect(this._onChange, this);
    this._aws.changed.connect(this._onChange, this);
    regions.changed.connect(this._onRegion, this);
  }

  /** Something that is shown changed, or was read again. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The configured clusters in the order of the configuration, then those that only AWS has; null before they were read. */
  get clusters(): readonly ICluster[] | null {
    const configured = this._configured.value;
    if (configured === null) {
      return null;
    }
    const inAws = this.aws?.clusters ?? [];
    const known = new Map(inAws.map(one => [one.name, one.hyperpod]));
    return [
      ...configured.map(one => {
        const hyperpod = one.hyperpod ?? known.get(one.name) ?? null;
        return { ...one, hyperpod };
      }),
      ...inAws.filter(one => !one.configured)
    ];
  }

  /** AWS' last answer, with its age or the reason why it is missing; null before the first one. */
  get aws(): IClusterPage | null {
    return this._aws.value;
  }

  /** Why the clusters can't be read now, if so. */
  get error(): ApiError | null {
    return this._configured.error;
  }

  /** Why AWS' clusters can't be read now, if so. */
  get awsError(): ApiError | null {
    return this._aws.error;
  }

  get isDisposed(): boolean {
    return this._configured.isDisposed;
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._regions.changed.disconnect(this._onRegion, this);
      this._configured.dispose();
      this._aws.dispose();
      Signal.clearData(this);
    }
  }

  /** A cluster by its name; null if it is not known. */
  find(name: string): ICluster | null {
    return this.clusters?.find(one => one.name === name) ?? null;
  }

  /** They are polled while visible; otherwise read once, and when requested. */
  set isLive(value: boolean) {
    if (value !== this._isLive) {
      this._isLive = value;
      this._follow();
    }
  }

  /** Somebody looks, until this is disposed; with `aws` also at what only AWS knows. */
  watch({ aws = false } = {}): IDisposable {
    const watcher = new Watcher(aws, () => {
      this._watchers.delete(watcher);
      this._follow();
    });
    this._watchers.add(watcher);
    this._follow();
    return watcher;
  }

  /** Query the schedulers now, past all caches, and AWS if its clusters are visible. */
  async refresh(): Promise<void> {
    if (this._isWatched(true)) {
      this._aws.refresh();
    }
    await this._configured.reread(true);
  }

  /** Read the server's data again, if visible. */
  async renew(): Promise<void> {
    if (this._isWatched(false)) {
      await this._configured.reread(false);
    }
  }

  /** List more clusters of AWS. */
  more(): void {
    this._limit += STEP;
    this._aws.reread();
  }

  private _isWatched(aws: boolean): boolean {
    return [...this._watchers].some(one => one.aws || !aws);
  }

  private _follow(): void {
    const isWatched = this._isWatched(false);
    if (isWatched && this._isLive) {
      this._configured.start();
    } else {
      this._configured.stop();
    }
    if (isWatched && !this._isLive && this._configured.value === null) {
      void this._configured.reread(false);
    }
    if (this._isWatched(true)) {
      this._aws.start();
    } else {
      this._aws.stop();
    }
  }

  private _onChange(): void {
    this._changed.emit();
  }

  private _onRegion(): void {
    this._limit = STEP;
    this._aws.restart();
  }

  private readonly _configured: ConfiguredClusters;
  private readonly _aws: Watched<IClusterPage>;
  private readonly _regions: RegionChoice;
  private readonly _watchers = new Set<Watcher>();
  private readonly _changed = new Signal<this, void>(this);
  private _isLive = true;
  private _limit = STEP;
}

export namespace ClusterStore {
  export interface IOptions {
    readonly client: IClusterClient;
    readonly regions: RegionChoice;
    /** Milliseconds from one reading of the configured clusters to the next. */
    readonly interval?: number;
    readonly awsTimes?: Watched.ITimes;
  }
}

/** Somebody who looks. */
class Watcher implements IDisposable {
  constructor(
    readonly aws: boolean,
    private readonly _end: () => void
  ) {}

  isDisposed = false;

  dispose(): void {
    if (!this.isDisposed) {
      this.isDisposed = true;
      this._end();
    }
  }
}
