import { HyperPodClient } from '../api';
import { IStorage } from './types';

/**
 * The client of the server extension's storage route.
 */
export class StorageClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** The storage of the server's machine. */
  overview(): Promise<IStorage> {
    return this._client.get('storage');
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IStorageClient = Pick<StorageClient, keyof StorageClient>;
