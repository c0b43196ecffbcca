import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { useLoaded } from '../components/useLoaded';
import {
  durationText,
  momentText,
  nodesText,
  shortMomentText
} from '../components/words';
import { Age } from './age';
import { Bar } from './bar';
import { IClusterClient } from './client';
import { gpuName } from './devices';
import { NodeMap } from './nodeMap';
import { clusterStateText } from './states';
import { ClusterView, useLive } from './view';

type IOverview = Schema<'ClusterOverview'>;
type IJob = Schema<'Job'>;
type IQueue = Schema<'Queue'>;

interface IProps {
  readonly cluster: string;
  readonly client: IClusterClient;
  readonly view: ClusterView;
  readonly openRun: (runId: string) => void;
  /** Show a node. */
  readonly openNode: (name: string) => void;
  readonly trans: TranslationBundle;
}

/**
 * The first tab of a cluster: free GPUs, a map of the nodes, the queues, and the jobs that wait.
 */
export function OverviewTab(props: IProps): JSX.Element {
  const { client, cluster, trans, view } = props;
  const load = React.useCallback(
    () => client.overview(cluster, false),
    [client, cluster]
  );
  const { error, renew, value } = useLoaded(load);
  useLive(view, renew);
  if (value === null) {
    return error ? (
      <ErrorMessage error={error} trans={trans} retry={renew} />
    ) : (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  return (
    <div className="jp-HyperPod-Overview">
      {value.problem && <Age aged={value} trans={trans} />}
      {error && <ErrorMessage error={error} trans={trans} />}
      <Notes notes={value.notes} />
      <Tiles value={value} trans={trans} />
      <Nodes {...props} value={value} />
      <Queues queues={value.queues} trans={trans} />
      <Waiting {...props} value={value} />
    </div>
  );
}

/** The numbers that people look for first. */
function Tiles(props: {
  value: IOverview;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans, value } = props;
  const usable = value.nodes.filter(node => node.usable).length;
  const mine = value.running.filter(job => job.mine).length;
  return (
    <ul className="jp-HyperPod-Tiles">
      {value.gpus.map(gpus => (
        <Tile
          key={gpus.type ?? ''}
          label={
            gpus.type
              ? trans.__('%1 free', gpuName(gpus.type))
              : trans.__('GPUs free')
          }
          number={gpus.free ?? '–'}
          detail={
            gpus.free === null
              ? trans.__('of %1 · hidden from you', gpus.total)
              : gpus.unavailable > 0
                ? trans.__(
                    'of %1 · %2 out of service',
                    gpus.total,
                    gpus.unavailable
                  )
                : trans.__('of %1', gpus.total)
          }
        >
          {gpus.used !== null && (
            <Bar
              parts={[
                { use: 'used', amount: gpus.used },
                { use: 'off', amount: gpus.unavailable }
              ]}
              total={gpus.total}
            />
          )}
        </Tile>
      ))}
      <Tile
        label={trans.__('Nodes up')}
        number={usable}
        detail={trans.__('of %1', value.nodes.length)}
      />
      <Tile
        label={trans.__('Running jobs')}
        number={value.running.length}
        detail={mine > 0 ? trans.__('%1 of them mine', mine) : ''}
      />
      <Tile
        label={trans.__('Waiting jobs')}
        number={value.waiting_total}
        detail={nextStart(value.waiting, trans)}
      />
    </ul>
  );
}

function Tile(props: {
  label: string;
  number: number | string;
  detail: string;
  children?: React.ReactNode;
}): JSX.Element {
  return (
    <li className="jp-HyperPod-Tile">
      <span className="jp-HyperPod-Tile-label">{props.label}</span>
      <span className="jp-HyperPod-Tile-number">{props.number}</span>
      <span className="jp-HyperPod-Tile-detail">{props.detail}</span>
      {props.children}
    </li>
  );
}

function nextStart(waiting: readonly IJob[], trans: TranslationBundle): string {
  const [first] = waiting;
  return first?.expected_start
    ? trans.__('next at %1', shortMomentText(first.expected_start))
    : '';
}

function Nodes(props: IProps & { value: IOverview }): JSX.Element | null {
  const { openNode, trans, value } = props;
  const jobs = React.useMemo(
    () => new Map(value.running.map(job => [job.scheduler_id, job])),
    [value.running]
  );
  return value.nodes.length === 0 ? null : (
    <section aria-label={trans.__('Nodes')}>
      <h2>{trans.__('Nodes')}</h2>
      <NodeMap
        nodes={value.nodes}
        jobs={jobs}
        openNode={openNode}
        trans={trans}
      />
    </section>
  );
}

function Queues(props: {
  queues: readonly IQueue[];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { queues, trans } = props;
  return queues.length === 0 ? null : (
    <section aria-label={trans.__('Queues')}>
      <h2>{trans.__('Queues')}</h2>
      <ul className="jp-HyperPod-QueueBars">
        {queues.map(queue => (
          <QueueBar key={queue.name} queue={queue} trans={trans} />
        ))}
      </ul>
    </section>
  );
}

function QueueBar(props: {
  queue: IQueue;
  trans: TranslationBundle;
}): JSX.Element {
  const { queue, trans } = props;
  const [free, total, text] = capacityOf(queue, trans);
  const isOff = queue.state !== 'up' || queue.usable === false;
  const parts = [
    text,
    queue.running > 0 && trans.__('%1 running', queue.running),
    queue.waiting > 0 && trans.__('%1 waiting', queue.waiting),
    queue.state !== 'up' && clusterStateText(queue.state, trans),
    queue.usable === false && trans.__('you may not use it')
  ];
  return (
    <li data-off={isOff} title={queue.reason ?? undefined}>
      <span className="jp-HyperPod-QueueBars-name">{queue.name}</span>
      <Bar
        parts={[{ use: 'used', amount: total - free }]}
        total={total}
        isOff={isOff}
      />
      <span>{parts.filter(Boolean).join(' · ')}</span>
    </li>
  );
}

/** What is free of a queue, of how much, and in words: GPUs where it has some, else nodes or slots. */
function capacityOf(
  queue: IQueue,
  trans: TranslationBundle
): [number, number, string] {
  if (queue.accelerators > 0) {
    const { accelerators: total, accelerators_free: free } = queue;
    return [free, total, trans.__('%1 of %2 GPUs free', free, total)];
  }
  if (queue.nodes !== null && queue.nodes_free !== null) {
    const { nodes: total, nodes_free: free } = queue;
    return [free, total, trans.__('%1 of %2 nodes free', free, total)];
  }
  const total = queue.slots ?? 0;
  const free = queue.slots_free ?? 0;
  return total === 0
    ? [0, 0, '']
    : [free, total, trans.__('%1 of %2 slots free', free, total)];
}

function Waiting(props: IProps & { value: IOverview }): JSX.Element | null {
  const { openRun, trans, value } = props;
  const more = value.waiting_total - value.waiting.length;
  return value.waiting.length === 0 ? null : (
    <section
      className="jp-HyperPod-Table"
      aria-label={trans.__('Waiting jobs')}
    >
      <h2>{trans.__('Waiting jobs')}</h2>
      <div className="jp-HyperPod-Table-scroll" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{trans.__('Job')}</th>
              <th scope="col">{trans.__('User')}</th>
              <th scope="col">{trans.__('Queue')}</th>
              <th scope="col">{trans.__('Size')}</th>
              <th scope="col">{trans.__('Waiting for')}</th>
              <th scope="col">{trans.__('Expected start')}</th>
              <th scope="col">{trans.__('Reason')}</th>
            </tr>
          </thead>
          <tbody>
            {value.waiting.map(job => (
              <WaitingRow
                key={`${job.scheduler_id} ${job.array ?? ''}`}
                job={job}
                openRun={openRun}
                trans={trans}
              />
            ))}
          </tbody>
        </table>
      </div>
      {more > 0 && (
        <p className="jp-HyperPod-Message">
          {trans._n('and %1 more job', 'and %1 more jobs', more)}
        </p>
      )}
    </section>
  );
}

function WaitingRow(
  props: Pick<IProps, 'openRun' | 'trans'> & { job: IJob }
): JSX.Element {
  const { job, openRun, trans } = props;
  const runId = job.run_id;
  return (
    <tr>
      <td>
        {runId === null ? (
          job.name
        ) : (
          <button
            type="button"
            className="jp-HyperPod-link"
            onClick={() => openRun(runId)}
          >
            {job.name}
          </button>
        )}
      </td>
      <td>{job.user}</td>
      <td>{job.queue}</td>
      <td>{nodesText(job.node_count ?? 0, job.accelerators, trans)}</td>
      <td>{durationText(job.submitted_at, null, trans)}</td>
      <td title={momentText(job.expected_start)}>
        {job.expected_start ? shortMomentText(job.expected_start) : ''}
      </td>
      <td>{job.reason}</td>
    </tr>
  );
}
