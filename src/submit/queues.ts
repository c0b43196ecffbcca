import { IClusterClient } from '../clusters/client';

/** Queues that are proposed at the most. */
const MOST = 200;

/** The names of a cluster's queues. Proposals only: a cluster that does not answer is told of by the preview. */
export async function queueNames(
  clusters: IClusterClient,
  cluster: string | null
): Promise<readonly string[]> {
  if (cluster === null) {
    return [];
  }
  try {
    const page = await clusters.table(cluster, 'queues', { limit: MOST });
    return page.rows.map(row => String(row.name));
  } catch {
    return [];
  }
}
