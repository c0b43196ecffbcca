import { HyperPodClient } from './client';
import type { Schema } from './schema';

/**
 * What runs on the server side: the version of the server extension, and that of its REST API.
 */
export type IVersion = Schema<'VersionAnswer'>;

/**
 * Ask the server extension who it is.
 */
export function fetchVersion(client: HyperPodClient): Promise<IVersion> {
  return client.get('version');
}
