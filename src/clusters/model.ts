import type { RegionChoice } from '../hyperpod/regions';
import { Watched } from '../components/watched';
import { IClusterClient } from './client';
import { ICluster, IClusterPage } from './types';

/** Clusters that are listed at first, and that come with each `more`. */
const STEP = 100;

/**
 * The clusters, looked at now and then while somebody wants to see them. Those that only AWS has are asked for only while they are shown, or when the user wants it.
 */
export class ClustersModel extends Watched<IClusterPage> {
  constructor(
    client: IClusterClient,
    regions: RegionChoice,
    times?: Watched.ITimes
  ) {
    const wanted = { limit: STEP, aws: false };
    super(
      refresh =>
        client.list({
          limit: wanted.limit,
          region: regions.chosen,
          ...(wanted.aws || refresh ? { refresh } : { configured: true })
        }),
      times
    );
    this._wanted = wanted;
    this._regions = regions;
    regions.changed.connect(this._onRegion, this);
  }

  /** The clusters of the configuration; null before they were read. */
  get configured(): readonly ICluster[] | null {
    return this.value?.clusters.filter(one => one.configured) ?? null;
  }

  override dispose(): void {
    this._regions.changed.disconnect(this._onRegion, this);
    super.dispose();
  }

  /** Whether somebody sees what AWS knows. */
  showAws(shown: boolean): void {
    if (shown !== this._wanted.aws) {
      this._wanted.aws = shown;
      if (shown && this.isStarted) {
        this.reread();
      }
    }
  }

  /** List more of them. */
  more(): void {
    this._wanted.limit += STEP;
    this.reread();
  }

  private _onRegion(): void {
    this._wanted.limit = STEP;
    this.restart();
  }

  private readonly _regions: RegionChoice;
  private readonly _wanted: { limit: number; aws: boolean };
}
