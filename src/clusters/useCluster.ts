import * as React from 'react';

import { useLoaded } from '../components/useLoaded';
import { IClusterClient } from './client';
import { ICluster } from './types';

/** A cluster of the configuration, as of when the page was opened; null as long as it is not known. */
export function useCluster(
  client: IClusterClient,
  cluster: string
): ICluster | null {
  const read = React.useCallback(async () => {
    const found = await client.configured();
    return found.find(one => one.name === cluster) ?? null;
  }, [client, cluster]);
  return useLoaded(read).value;
}
