import { ISubmitClient } from './client';
import { Choices } from './types';

/** What a cluster proposes. A cluster that does not answer proposes nothing: the preview tells of it. */
export async function choicesOf(
  client: ISubmitClient,
  cluster: string | null
): Promise<Choices> {
  return cluster === null
    ? {}
    : client.choices(cluster).catch((): Choices => ({}));
}
