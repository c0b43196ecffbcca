import { HyperPodClient } from '../api';
import { decodeStorage, IStorage } from './types';

/**
 * What is asked of the server on storage; tests give one of their own.
 */
export interface IStorageClient {
  /** The storage of the server's machine. */
  overview(): Promise<IStorage>;
}

/**
 * The client of the server extension's storage route.
 */
export class StorageClient implements IStorageClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  overview(): Promise<IStorage> {
    return this._client.get('storage', decodeStorage);
  }

  private readonly _client: HyperPodClient;
}
