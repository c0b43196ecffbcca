import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IClusterClient } from './client';
import { endedColumns, runColumns } from './jobColumns';
import { JobsTable } from './jobsTable';
import { LoadedTable } from './serverTable';
import type { ClusterView } from './view';

type Shown = 'active' | 'ended' | 'runs';

/**
 * The jobs of a cluster: everybody's that wait or run, everybody's that ended, and the user's own runs that ended.
 */
export function JobsTab(props: {
  cluster: string;
  client: IClusterClient;
  view: ClusterView;
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { openRun, trans } = props;
  const [shown, show] = React.useState<Shown>('active');
  const labels: readonly [Shown, string][] = [
    ['active', trans.__('Waiting and running')],
    ['ended', trans.__('Finished')],
    ['runs', trans.__('My finished runs')]
  ];
  return (
    <>
      <div
        className="jp-HyperPod-Segments"
        role="group"
        aria-label={trans.__('Jobs to show')}
      >
        {labels.map(([name, label]) => (
          <button
            key={name}
            type="button"
            aria-pressed={name === shown}
            onClick={() => show(name)}
          >
            {label}
          </button>
        ))}
      </div>
      {shown === 'active' && <JobsTable {...props} />}
      {shown === 'ended' && (
        <LoadedTable
          {...props}
          // Accounting is slow to answer: it is asked again only by the button.
          view={undefined}
          refresher={props.view}
          kind="ended"
          label={trans.__('Finished jobs')}
          columns={endedColumns(trans, openRun)}
          empty={trans.__('The cluster has no record of finished jobs.')}
          fixed
          filtered={trans.__('User')}
        />
      )}
      {shown === 'runs' && (
        <LoadedTable
          {...props}
          kind="runs"
          label={trans.__('My finished runs')}
          columns={runColumns(trans, openRun)}
          empty={trans.__('You have no finished runs on this cluster.')}
          fixed
        />
      )}
    </>
  );
}
