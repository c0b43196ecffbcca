import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, refreshIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IErrorBody } from '../api';
import { Notes } from '../components/notes';
import { StateChip } from '../components/stateChip';
import { Age } from './age';
import { orchestratorText } from './awsWords';
import { clusterStateText } from './states';
import { ICluster, schedulerCalls } from './types';
import type { ClusterView } from './view';

/**
 * The first lines of a cluster's page: its name and states, how old they are, and what can be done.
 */
export function ClusterHead(props: {
  view: ClusterView;
  newRun: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { newRun, trans, view } = props;
  const [isBusy, setBusy] = React.useState(false);
  const { row } = view;
  const refresh = async () => {
    setBusy(true);
    await view.refresh();
    setBusy(false);
  };
  return (
    <>
      <div className="jp-HyperPod-PageHead">
        <h1>{row?.hyperpod?.name ?? row?.name ?? view.cluster}</h1>
        {row && (
          <StateChip
            state={row.state}
            text={clusterStateText(row.state, trans)}
            reason={row.reason}
            trans={trans}
          />
        )}
        {row && (
          <span className="jp-HyperPod-PageHead-detail">
            {detailText(row, view.cluster, trans)}
          </span>
        )}
        <span className="jp-HyperPod-PageHead-end">
          <Age
            aged={{ as_of: view.asOf, loading: view.detail.value?.loading }}
            title={row ? callsText(row, trans) : undefined}
            trans={trans}
          />
          <button
            type="button"
            className="jp-HyperPod-IconButton"
            title={trans.__('Refresh')}
            aria-label={trans.__('Refresh')}
            aria-busy={isBusy}
            onClick={() => void refresh()}
          >
            <refreshIcon.react tag="span" width="16px" height="16px" />
          </button>
          {row?.configured && (
            <button
              type="button"
              className="jp-HyperPod-button jp-mod-accept"
              onClick={newRun}
            >
              <addIcon.react tag="span" width="16px" height="16px" />
              {trans.__('New run')}
            </button>
          )}
        </span>
      </div>
      {row && <Notes notes={notesOf(row, view.detail.value?.problem)} />}
    </>
  );
}

/** What is wrong with a cluster, and what of it is hidden; each once. */
function notesOf(
  { as_of: asOf, configured, hyperpod, notes, reason }: ICluster,
  problem: IErrorBody | null | undefined
): readonly string[] {
  const missing = hyperpod === null ? problem : null;
  return [
    ...new Set([
      // Where nothing was ever read, each tab says why itself.
      configured && asOf === null ? '' : (reason ?? ''),
      hyperpod?.reason ?? '',
      missing?.message ?? '',
      missing?.hint ?? '',
      ...notes
    ])
  ];
}

/** What this server costs the scheduler. */
function callsText(
  row: ICluster,
  trans: TranslationBundle
): string | undefined {
  const calls = schedulerCalls(row);
  return calls === null
    ? undefined
    : trans._n(
        '%1 scheduler call in the last minute',
        '%1 scheduler calls in the last minute',
        calls
      );
}

/** The scheduler, AWS' state and the region, as far as they are known. */
function detailText(
  row: ICluster,
  name: string,
  trans: TranslationBundle
): string {
  const { configured, hyperpod, orchestrator } = row;
  const parts = [
    orchestrator === 'local'
      ? trans.__('this machine')
      : orchestratorText(orchestrator, trans)
  ];
  if (hyperpod) {
    if (configured) {
      const state = clusterStateText(hyperpod.state, trans);
      parts.push(trans.__('HyperPod: %1', state));
    }
    parts.push(hyperpod.region);
    if (configured && hyperpod.name !== name) {
      parts.push(trans.__('configured as %1', row.name));
    }
  }
  return parts.join(' · ');
}
