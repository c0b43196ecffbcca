import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import type { Schema } from '../../api';
import { IClusterClient } from '../client';
import {
  ICluster,
  IClusterDetail,
  IClusterPage,
  ITablePage,
  ITableQuery,
  TableKind
} from '../types';
import { FakeEventClient } from '../../events/__tests__/fakes';
import { IGovernance } from '../../governance/types';
import { FakeNodeClient } from '../../nodes/__tests__/fakes';
import { ClusterPage } from '../page';
import { RegionChoice } from '../regions';
import { ClusterStore } from '../store';

/** When AWS was asked, in all answers here. */
export const AS_OF = '2026-11-21T18:54:51.000Z';

/** What all answers have, as the server sends it. */
export const AGED = { as_of: AS_OF, problem: null, loading: false, notes: [] };

/** What AWS knows of a cluster, as the server sends it. */
function known(
  name: string,
  more: Readonly<Record<string, unknown>>
): Record<string, unknown> {
  return {
    name,
    arn: `arn:aws:sagemaker:us-west-2:111122223333:cluster/${name}`,
    region: 'us-west-2',
    state: 'in-service',
    status: 'InService',
    orchestrator: 'slurm',
    nodes: 5,
    target: 5,
    created_at: AS_OF,
    described_at: AS_OF,
    image_status: 'UpToDate',
    ...more
  };
}

/** A cluster that only AWS has, as the server sends it; `more` is of what AWS knows of it. */
export function row(
  name: string,
  more: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return {
    name,
    orchestrator: 'slurm',
    state: 'in-service',
    configured: false,
    configure: `hpj config add ${name}`,
    hyperpod: known(name, more)
  };
}

/** Clusters, as the server sends them. */
export function list(...clusters: unknown[]): Record<string, unknown> {
  return { ...AGED, clusters, next: null, total: clusters.length };
}

/** A cluster with its description, as the server sends it; `more` is of what AWS knows of it. */
export function detail(
  name: string,
  more: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return {
    ...AGED,
    cluster: row(name, {
      node_recovery: 'Automatic',
      settings: [
        {
          name: 'node-recovery',
          value: 'Automatic',
          meaning: 'HyperPod reboots or replaces failed nodes'
        }
      ],
      groups: [
        {
          name: 'workers',
          state: 'degraded',
          status: 'Degraded',
          instance_type: 'ml.p5.48xlarge',
          current: 3,
          target: 4,
          slurm_role: 'Compute',
          capacity: 'Spot',
          script: 's3://scripts/on_create.sh',
          role_arn: null,
          checks: ['InstanceStress']
        }
      ],
      ...more
    }),
    tags: [{ key: 'team', value: 'vision' }],
    log_group: `/aws/sagemaker/Clusters/${name}/x`,
    links: {
      cluster: 'https://us-west-2.console.aws.amazon.com/c',
      logs: 'https://us-west-2.console.aws.amazon.com/l',
      eks: null
    }
  };
}

/** A node that the scheduler and AWS have, as the server sends it. */
export const NODE = {
  name: 'ip-10-0-0-1',
  state: 'drained',
  reason: 'disk',
  accelerators: 8,
  accelerators_free: 0,
  jobs: ['7', '8'],
  instance: 'i-0123456789abcdef0',
  instance_state: 'failed',
  instance_status: 'Failure',
  instance_reason: 'EC2 health check failed',
  instance_group: 'workers',
  instance_type: 'ml.p5.48xlarge',
  launched_at: AS_OF,
  host: 'ip-10-0-0-1.us-west-2.compute.internal',
  image_version: '1.2.0',
  image_status: 'SecurityUpdateRequired'
};

/** Nodes, as the server sends them. */
export function nodes(
  rows: readonly unknown[] = [NODE],
  more: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return {
    ...AGED,
    changing: false,
    nodes: rows,
    next: null,
    total: rows.length,
    ...more
  };
}

const CLASS = 'training';
const PRIORITY = { name: CLASS, weight: 80, label: `${CLASS}-priority` };

/** Task governance, as the server sends it. */
export const GOVERNANCE = {
  ...AGED,
  cluster: 'ml-cluster',
  quotas: [
    {
      quota_id: 'a1',
      name: 'vision-quota',
      team: 'vision',
      state: 'active',
      status: 'Created',
      enabled: true,
      weight: 70,
      allocated: [
        {
          instance_type: 'ml.g5.8xlarge',
          count: 4,
          accelerators: null,
          cpus: null,
          memory_gib: null,
          partition: null,
          partitions: null
        }
      ],
      sharing: 'LendAndBorrow',
      borrow_percent: 50,
      borrow_most: [],
      preemption: 'LowerPriority',
      reason: null,
      namespace: 'hyperpod-ns-vision',
      queue: 'hyperpod-ns-vision-localqueue',
      used: null,
      running: null,
      waiting: null
    }
  ],
  policies: [
    {
      policy_id: 'b1',
      name: 'the-policy',
      state: 'active',
      status: 'Created',
      fair_share: 'Enabled',
      idle_sharing: 'Disabled',
      priorities: [PRIORITY],
      reason: null
    }
  ]
};

/** The clusters of a fake server, read every 20 ms. */
export function storeOf(client: IClusterClient): ClusterStore {
  const regions = new RegionChoice({ get: () => new Promise(() => undefined) });
  return new ClusterStore({ client, regions, interval: 20 });
}

/** A page of a cluster of a fake server. */
export function pageOf(
  client: IClusterClient,
  more: Partial<ClusterPage.IOptions> = {}
): ClusterPage {
  return new ClusterPage({
    cluster: 'ml-cluster',
    client,
    store: storeOf(client),
    nodeClient: new FakeNodeClient(),
    eventClient: new FakeEventClient(),
    metricsClient: { metrics: () => new Promise(() => undefined) },
    openTerminal: jest.fn(),
    openLogs: jest.fn(),
    newRun: jest.fn(),
    connect: jest.fn(),
    openRun: jest.fn(),
    trans: nullTranslator.load('hyperpod_jlab'),
    ...more
  });
}

/**
 * A server that answers what the test says, and remembers what it was asked.
 */
export class FakeClusterClient implements IClusterClient {
  /** What was asked, in order: the list's limit or the cluster's name, and whether AWS was to be asked. */
  readonly asked: [string, boolean][] = [];
  /** The lists that were asked for. */
  readonly lists: Schema<'ClustersQuery'>[] = [];
  readonly queries: ITableQuery[] = [];

  answer: unknown = list();
  detail: unknown = detail('ml-cluster');
  nodeAnswer: unknown = nodes();
  governanceAnswer: unknown = GOVERNANCE;
  failure: Error | null = null;

  readonly act = jest.fn();
  readonly queues = jest.fn();

  list(query: Schema<'ClustersQuery'>): Promise<IClusterPage> {
    this.lists.push(query);
    this.asked.push([String(query.limit), query.refresh ?? false]);
    return this._answer(() => {
      const page = answerOf('ClusterPage', this.answer);
      const clusters = page.clusters
        .filter(one => one.configured)
        .map(one => ({ ...one, hyperpod: null }));
      return query.configured
        ? { ...page, clusters, as_of: null, problem: null, loading: false }
        : page;
    });
  }

  async configured(): Promise<readonly ICluster[]> {
    return (await this.list({ configured: true })).clusters;
  }

  cluster(name: string, refresh: boolean): Promise<IClusterDetail> {
    this.asked.push([name, refresh]);
    return this._answer(() => answerOf('ClusterDetail', this.detail));
  }

  overview(): Promise<Schema<'ClusterOverview'>> {
    return Promise.resolve(answerOf('ClusterOverview'));
  }

  governance(name: string, refresh: boolean): Promise<IGovernance> {
    this.asked.push([`${name}/governance`, refresh]);
    return this._answer(() =>
      answerOf('ClusterGovernance', this.governanceAnswer)
    );
  }

  table(_: string, _kind: TableKind, query: ITableQuery): Promise<ITablePage> {
    this.queries.push(query);
    return this._answer(() => {
      const { nodes: rows, ...page } = answerOf('Nodes', this.nodeAnswer);
      return { ...page, rows };
    });
  }

  private _answer<T>(make: () => T): Promise<T> {
    return this.failure
      ? Promise.reject(this.failure)
      : Promise.resolve(make());
  }
}
