import { HyperPodClient } from '../api';
import { ILifecycle, ILifecycleLog } from './types';

/**
 * The client of the server extension's lifecycle routes.
 */
export class LifecycleClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** How far it has come. */
  read(): Promise<ILifecycle> {
    return this._client.get('lifecycle');
  }

  /** The end of its log. */
  log(): Promise<ILifecycleLog> {
    return this._client.get('lifecycle/log');
  }
}

/** What the rest needs of it; tests give one of their own. */
export type ILifecycleClient = Pick<LifecycleClient, keyof LifecycleClient>;
