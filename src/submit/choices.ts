import { ISubmitClient } from './client';
import { Choices } from './types';

/** What a cluster suggests. A cluster that does not answer suggests nothing; the preview shows its error. */
export async function choicesOf(
  client: ISubmitClient,
  cluster: string | null
): Promise<Choices> {
  return cluster === null
    ? {}
    : client.choices(cluster).catch((): Choices => ({}));
}
