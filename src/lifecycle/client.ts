import { HyperPodClient } from '../api';
import {
  decodeLifecycle,
  decodeLifecycleLog,
  ILifecycle,
  ILifecycleLog
} from './types';

/**
 * What is asked of the server on the script that runs when this space starts; tests give one of their own.
 */
export interface ILifecycleClient {
  /** How far it has come. */
  read(): Promise<ILifecycle>;
  /** The end of its log. */
  log(): Promise<ILifecycleLog>;
}

/**
 * The client of the server extension's lifecycle routes.
 */
export class LifecycleClient implements ILifecycleClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  read(): Promise<ILifecycle> {
    return this._client.get('lifecycle', decodeLifecycle);
  }

  log(): Promise<ILifecycleLog> {
    return this._client.get('lifecycle/log', decodeLifecycleLog);
  }

  private readonly _client: HyperPodClient;
}
