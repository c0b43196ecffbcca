import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IClusterClient } from './client';
import { schedulerCalls } from './types';
import { useCluster } from './useCluster';

/** How often a scheduler was asked. */
export function callsText(calls: number, trans: TranslationBundle): string {
  return trans._n(
    '%1 scheduler call in the last minute',
    '%1 scheduler calls in the last minute',
    calls
  );
}

/**
 * What this server costs a cluster's scheduler, as of when the page was opened; nothing where there is none.
 */
export function CallsNote(props: {
  client: IClusterClient;
  cluster: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { client, cluster, trans } = props;
  const there = useCluster(client, cluster);
  const calls = there && schedulerCalls(there);
  return calls === null ? null : (
    <p className="jp-HyperPod-ClusterPage-note">{callsText(calls, trans)}</p>
  );
}
