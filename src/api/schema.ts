import type { Event } from '@jupyterlab/services';

import type { components } from './generated/openapi';

/**
 * A type of the REST API by its name in the OpenAPI document, from which `jlpm build:types` makes `./generated/openapi`.
 *
 * Answers are what the server says they are: both sides come in one wheel, and `checkVersion` tells when they don't.
 */
export type Schema<K extends keyof components['schemas']> =
  components['schemas'][K];

/** An event as its schema says that it is. */
export function eventOf<K extends keyof components['schemas']>(
  event: Event.Emission
): Schema<K> {
  return event as unknown as Schema<K>;
}
