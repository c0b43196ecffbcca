import { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { StateChip } from '../components/stateChip';
import { useLoaded } from '../components/useLoaded';
import type { INodeOpeners } from '../nodes/openers';
import type { IClusterClient } from './client';
import { IColumn } from './serverTable';
import { clusterStateText } from './states';
import { TableRow, valueText } from './types';
import { ClusterView, useLive } from './view';

/** The most rows that the server sends; nodes whose names contain this one come along. */
const MAX_ROWS = 1000;

interface IProps extends INodeOpeners {
  readonly cluster: string;
  readonly client: IClusterClient;
  readonly view: ClusterView;
  /** The node's name. */
  readonly node: string;
  /** What is said of it. */
  readonly columns: readonly IColumn[];
  readonly openRun: (runId: string) => void;
  readonly close: () => void;
  readonly trans: TranslationBundle;
}

/**
 * All about one node, beside the table of nodes: its GPUs and their jobs, its health, and ways to its terminal and logs.
 */
export function NodeDrawer(props: IProps): JSX.Element {
  const { client, close, cluster, node, trans, view } = props;
  const load = React.useCallback(async () => {
    const query = { limit: MAX_ROWS, filter: node };
    const [nodes, jobs] = await Promise.all([
      client.table(cluster, 'nodes', query),
      view.row?.configured === false
        ? { rows: [] }
        : client.table(cluster, 'jobs', query)
    ]);
    const row = nodes.rows.find(({ name }) => name === node) ?? null;
    return { row, jobs: row ? jobsOf(row, jobs.rows) : [] };
  }, [client, cluster, node, view]);
  const { error, renew, value } = useLoaded(load);
  useLive(view, renew);
  return (
    <aside
      className="jp-HyperPod-Drawer"
      aria-label={trans.__('Node %1', node)}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          close();
        }
      }}
    >
      <header>
        <h2>{node}</h2>
        <button
          type="button"
          className="jp-HyperPod-IconButton"
          title={trans.__('Close')}
          aria-label={trans.__('Close')}
          autoFocus
          onClick={close}
        >
          <closeIcon.react tag="span" width="16px" height="16px" />
        </button>
      </header>
      {error && <ErrorMessage error={error} trans={trans} retry={renew} />}
      {value === null && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {value?.row === null && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('The cluster no longer has this node.')}
        </p>
      )}
      {value?.row && <Detail {...props} row={value.row} jobs={value.jobs} />}
    </aside>
  );
}

/** The jobs on a node. The embedded cluster names runs, the others the scheduler's jobs. */
function jobsOf(row: TableRow, jobs: readonly TableRow[]): readonly TableRow[] {
  const ids = new Set(valueText(row.jobs).split(', '));
  return jobs.filter(
    job =>
      ids.has(valueText(job.scheduler_id)) || ids.has(valueText(job.run_id))
  );
}

function Detail(
  props: IProps & { row: TableRow; jobs: readonly TableRow[] }
): JSX.Element {
  const { columns, jobs, openLogs, openRun, openTerminal, row, trans } = props;
  const { instance } = row;
  const facts = columns
    .filter(({ name }) => name !== 'jobs')
    .map(column => ({
      ...column,
      value: column.render ? column.render(row) : valueText(row[column.name])
    }))
    .filter(({ value }) => value !== null && value !== '');
  return (
    <>
      {typeof instance === 'string' && (
        <div className="jp-HyperPod-Drawer-buttons">
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={() => openTerminal(instance)}
          >
            {trans.__('Terminal')}
          </button>
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={() => openLogs(instance)}
          >
            {trans.__('Logs')}
          </button>
        </div>
      )}
      <h3>{trans.__('Jobs')}</h3>
      {jobs.length === 0 && (
        <p className="jp-HyperPod-Message">{trans.__('No jobs')}</p>
      )}
      <ul className="jp-HyperPod-Drawer-jobs">
        {jobs.map(job => (
          <NodeJob
            key={valueText(job.scheduler_id)}
            job={job}
            openRun={openRun}
            trans={trans}
          />
        ))}
      </ul>
      <dl className="jp-HyperPod-facts">
        {facts.map(({ label, name, value }) => (
          <div key={name}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function NodeJob(props: {
  job: TableRow;
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { job, openRun, trans } = props;
  const { run_id: runId } = job;
  const name = valueText(job.name);
  const state = valueText(job.state);
  return (
    <li>
      {typeof runId === 'string' ? (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => openRun(runId)}
        >
          {name}
        </button>
      ) : (
        name
      )}
      <span>{valueText(job.user)}</span>
      <StateChip
        state={state}
        text={clusterStateText(state, trans)}
        trans={trans}
      />
    </li>
  );
}
