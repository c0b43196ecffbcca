import { HyperPodClient } from './client';
import { numberOf, recordOf, textOf } from './decoding';
import type { IVersionAnswer } from './types';

/**
 * What runs on the server side: the version of the server extension, and that of its REST API.
 */
export type IVersion = IVersionAnswer;

/**
 * Ask the server extension who it is.
 */
export function fetchVersion(client: HyperPodClient): Promise<IVersion> {
  return client.get('version', decodeVersion);
}

function decodeVersion(value: unknown): IVersion {
  const from = recordOf<IVersionAnswer>(value, 'version');
  return { version: textOf(from, 'version'), api: numberOf(from, 'api') };
}
