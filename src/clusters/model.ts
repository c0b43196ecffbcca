import { Polled } from '../components/polled';
import { IClusterClient } from './client';
import { ICluster } from './types';

const POLL_MS = 60_000;

/**
 * The clusters of the configuration, looked at now and then once somebody wants to see them.
 */
export class ClustersModel extends Polled<readonly ICluster[]> {
  constructor(client: IClusterClient, interval = POLL_MS) {
    super({ name: 'clusters', interval });
    this._client = client;
  }

  /** The clusters; null before they were read. */
  get clusters(): readonly ICluster[] | null {
    return this.value;
  }

  protected override read(): Promise<readonly ICluster[]> {
    return this._client.list();
  }

  private readonly _client: IClusterClient;
}
