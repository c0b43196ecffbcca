import { HyperPodClient } from './client';
import { isRecord } from './errors';

/**
 * What runs on the server side.
 */
export interface IVersion {
  /** The version of the server extension. */
  version: string;
  /** The version of its REST API. */
  api: number;
}

/**
 * Ask the server extension who it is.
 */
export function fetchVersion(client: HyperPodClient): Promise<IVersion> {
  return client.get('version', decodeVersion);
}

function decodeVersion(value: unknown): IVersion {
  if (
    isRecord(value) &&
    typeof value.version === 'string' &&
    typeof value.api === 'number'
  ) {
    return { version: value.version, api: value.api };
  }
  throw new Error('The answer holds no version');
}
