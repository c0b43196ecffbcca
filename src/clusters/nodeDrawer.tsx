import { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { durationText, shortMomentText } from '../components/words';
import type { IEventClient } from '../events/client';
import { LevelChip } from '../events/columns';
import { showEvent } from '../events/detail';
import { hasEvents } from '../events/types';
import type { INodeOpeners } from '../nodes/openers';
import type { NodeAction } from '../nodes/types';
import type { INodeActions } from '../nodes/useNodeActions';
import { nodeActionCaption, nodeActionLabel } from '../nodes/words';
import type { IClusterClient } from './client';
import { IJob, INodeTile } from './nodeCells';
import { NodeMap } from './nodeMap';
import { IColumn } from './serverTable';
import { TableRow, valueText } from './types';
import { ClusterView, useLive } from './view';

/** The most rows that the server sends; nodes whose names contain this one come along. */
const MAX_ROWS = 1000;

/** Events that are shown; the tab has all. */
const MAX_EVENTS = 5;

interface IProps extends INodeOpeners {
  readonly cluster: string;
  readonly client: IClusterClient;
  readonly eventClient: IEventClient;
  readonly view: ClusterView;
  /** The node's name. */
  readonly node: string;
  /** What is said of it. */
  readonly columns: readonly IColumn[];
  readonly actions: INodeActions;
  readonly openRun: (runId: string) => void;
  readonly close: () => void;
  readonly trans: TranslationBundle;
}

/**
 * All about one node, beside the table of nodes: its GPUs and their jobs, its health, its events, what can be done to it, and ways to its terminal and logs.
 */
export function NodeDrawer(props: IProps): JSX.Element {
  const { client, close, cluster, node, trans, view } = props;
  const load = React.useCallback(async () => {
    const query = { limit: MAX_ROWS, filter: node };
    const [nodes, overview] = await Promise.all([
      client.table(cluster, 'nodes', query),
      view.row?.configured === false ? null : client.overview(cluster, false)
    ]);
    return {
      row: nodes.rows.find(({ name }) => name === node) ?? null,
      tile: overview?.nodes.find(({ name }) => name === node) ?? null,
      jobs: new Map(overview?.running.map(job => [job.scheduler_id, job]))
    };
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
      {value?.row && <Detail {...props} {...value} row={value.row} />}
    </aside>
  );
}

interface IDetail extends IProps {
  readonly row: TableRow;
  readonly tile: INodeTile | null;
  readonly jobs: ReadonlyMap<string, IJob>;
}

function Detail(props: IDetail): JSX.Element {
  const { columns, row, tile, trans } = props;
  const { instance } = row;
  const facts = columns
    .filter(
      // The parts above say it.
      ({ name }) =>
        name !== 'jobs' && (name !== 'accelerators_free' || !tile?.gpus)
    )
    .map(column => ({
      ...column,
      value: column.render ? column.render(row) : valueText(row[column.name])
    }))
    .filter(({ value }) => value !== null && value !== '');
  return (
    <>
      <Buttons {...props} />
      <NodeJobs {...props} />
      <h3>{trans.__('Details')}</h3>
      <dl className="jp-HyperPod-facts">
        {facts.map(({ label, name, value }) => (
          <div key={name}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {typeof instance === 'string' && (
        <NodeEvents {...props} instance={instance} />
      )}
    </>
  );
}

/** By a node's state, the action that would change nothing. */
const IDLE_ACTIONS: Readonly<Record<string, NodeAction>> = {
  drained: 'drain',
  draining: 'drain'
};

/** What opens the node's terminal and logs, and what can be done to it. */
function Buttons(props: IDetail): JSX.Element {
  const { actions, node, openLogs, openTerminal, row, tile, trans } = props;
  const { instance } = row;
  // A node that jobs can start on has nothing to resume.
  const fitting = actions.abilities.filter(
    ({ action }) =>
      tile === null ||
      action !== (tile.usable ? 'resume' : IDLE_ACTIONS[tile.state])
  );
  return (
    <div className="jp-HyperPod-Drawer-buttons">
      {typeof instance === 'string' && (
        <>
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
        </>
      )}
      {fitting.map(({ action, problem }) => {
        const isOff = problem !== null || actions.busy !== null;
        return (
          <button
            key={action}
            type="button"
            className={`jp-HyperPod-button${action === 'replace' ? ' jp-mod-warn' : ''}`}
            title={problem?.message ?? nodeActionCaption(action, trans)}
            aria-disabled={isOff}
            onClick={() => isOff || actions.act(action, [node])}
          >
            {nodeActionLabel(action, trans)}
          </button>
        );
      })}
    </div>
  );
}

/** The node's GPUs by job, and its jobs. */
function NodeJobs(props: IDetail): JSX.Element | null {
  const { jobs, openRun, tile, trans } = props;
  const nodes = React.useMemo(() => (tile ? [tile] : []), [tile]);
  if (tile === null) {
    return null;
  }
  return (
    <>
      {tile.gpus > 0 && (
        <>
          <h3>{trans.__('GPUs')}</h3>
          <NodeMap nodes={nodes} jobs={jobs} trans={trans} />
        </>
      )}
      <h3>{trans.__('Jobs')}</h3>
      {tile.shares.length === 0 && (
        <p className="jp-HyperPod-Message">{trans.__('No jobs')}</p>
      )}
      <ul className="jp-HyperPod-Drawer-jobs">
        {tile.shares.map(({ gpus, job }) => (
          <NodeJob
            key={job}
            id={job}
            job={jobs.get(job) ?? null}
            gpus={gpus}
            openRun={openRun}
            trans={trans}
          />
        ))}
      </ul>
    </>
  );
}

function NodeJob(props: {
  id: string;
  job: IJob | null;
  /** Its GPUs on this node. */
  gpus: number;
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { gpus, id, job, openRun, trans } = props;
  const runId = job?.run_id ?? null;
  const name = job?.name ?? id;
  const facts = [
    job?.user,
    gpus > 0 && trans._n('%1 GPU', '%1 GPUs', gpus),
    job?.started_at && durationText(job.started_at, null, trans)
  ];
  return (
    <li>
      {runId === null ? (
        <span>{name}</span>
      ) : (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => openRun(runId)}
        >
          {name}
        </button>
      )}
      <span>{facts.filter(Boolean).join(' · ')}</span>
    </li>
  );
}

/** The newest events of the node's instance, where the cluster has events. */
function NodeEvents(props: IDetail & { instance: string }): JSX.Element | null {
  const { cluster, eventClient, instance, trans, view } = props;
  const isRecorded = hasEvents(view.row);
  const load = React.useCallback(async () => {
    const query = { node: instance, sort: '-time', limit: MAX_EVENTS };
    return isRecorded ? (await eventClient.events(cluster, query)).rows : [];
  }, [cluster, eventClient, instance, isRecorded]);
  const { error, retry, value } = useLoaded(load);
  if (!isRecorded) {
    return null;
  }
  return (
    <>
      <h3>{trans.__('Events')}</h3>
      {error && <ErrorMessage error={error} trans={trans} retry={retry} />}
      {value?.length === 0 && (
        <p className="jp-HyperPod-Message">{trans.__('No events')}</p>
      )}
      <ul className="jp-HyperPod-Drawer-events">
        {value?.map(row => {
          const id = valueText(row.event_id);
          return (
            <li key={id}>
              <span>{shortMomentText(valueText(row.time))}</span>
              <LevelChip level={valueText(row.level)} trans={trans} />
              <button
                type="button"
                className="jp-HyperPod-link"
                title={trans.__('Show event details')}
                onClick={() => void showEvent(eventClient, cluster, id, trans)}
              >
                {valueText(row.description) || trans.__('(no message)')}
              </button>
            </li>
          );
        })}
      </ul>
    </>
  );
}
