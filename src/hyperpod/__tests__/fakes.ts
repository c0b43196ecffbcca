import { answerOf } from '../../__tests__/answers';
import { ITablePage, ITableQuery } from '../../clusters/types';
import { IHyperpodClient } from '../client';
import { IGovernance } from '../governanceTypes';
import { IHyperpodDetail, IHyperpodList } from '../types';

/** When AWS was asked, in all answers here. */
export const AS_OF = '2026-11-21T18:54:51.000Z';

/** What all answers have, as the server sends it. */
export const AGED = { as_of: AS_OF, problem: null, loading: false, notes: [] };

/** What the list has of a cluster too. */
function known(name: string): Record<string, unknown> {
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
    image_status: 'UpToDate',
    configured_as: [],
    mounted_here: null,
    reason: null,
    reach: null
  };
}

/** A cluster in the list, as the server sends it. */
export function row(
  name: string,
  more: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return { ...known(name), described_at: AS_OF, ...more };
}

/** A cluster with its description, as the server sends it. */
export function detail(
  name: string,
  more: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return {
    ...known(name),
    ...AGED,
    eks_arn: null,
    node_recovery: 'Automatic',
    provisioning: null,
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
    tags: [{ key: 'team', value: 'vision' }],
    log_group: `/aws/sagemaker/Clusters/${name}/x`,
    links: {
      cluster: 'https://us-west-2.console.aws.amazon.com/c',
      logs: 'https://us-west-2.console.aws.amazon.com/l',
      eks: null
    },
    ...more
  };
}

/** A node, as the server sends it. */
export const NODE = {
  name: 'i-0123456789abcdef0',
  state: 'failed',
  status: 'Failure',
  reason: 'EC2 health check failed',
  instance_group: 'workers',
  instance_type: 'ml.p5.48xlarge',
  launched_at: AS_OF,
  host: 'ip-10-0-0-1.us-west-2.compute.internal',
  image_version: '1.2.0',
  image_status: 'SecurityUpdateRequired',
  node: 'ip-10-0-0-1',
  scheduler_state: 'drained',
  scheduler_reason: 'disk',
  accelerators: 8,
  accelerators_free: 0,
  jobs: ['7', '8']
};

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

/**
 * A server that answers what the test says, and remembers what it was asked.
 */
export class FakeHyperpodClient implements IHyperpodClient {
  /** What was asked, in order: the list's limit or the cluster's name, and whether AWS was to be asked. */
  readonly asked: [string, boolean][] = [];
  /** The regions of the lists that were asked for. */
  readonly regions: (string | null)[] = [];
  readonly queries: ITableQuery[] = [];

  answer: unknown = { ...AGED, clusters: [], next: null, total: 0 };
  detail: unknown = detail('ml-cluster');
  nodeAnswer: unknown = {
    ...AGED,
    changing: false,
    nodes: [NODE],
    next: null,
    total: 1
  };
  governanceAnswer: unknown = GOVERNANCE;
  failure: Error | null = null;

  list(
    limit: number,
    refresh: boolean,
    region: string | null
  ): Promise<IHyperpodList> {
    this.asked.push([String(limit), refresh]);
    this.regions.push(region);
    return this._answer(() => answerOf('HyperpodClusters', this.answer));
  }

  cluster(name: string, refresh: boolean): Promise<IHyperpodDetail> {
    this.asked.push([name, refresh]);
    return this._answer(() => answerOf('HyperpodClusterAnswer', this.detail));
  }

  governance(name: string, refresh: boolean): Promise<IGovernance> {
    this.asked.push([`${name}/governance`, refresh]);
    return this._answer(() =>
      answerOf('HyperpodGovernance', this.governanceAnswer)
    );
  }

  nodes(_: string, query: ITableQuery): Promise<ITablePage> {
    this.queries.push(query);
    return this._answer(() => {
      const { nodes, ...page } = answerOf('HyperpodNodes', this.nodeAnswer);
      return { ...page, rows: nodes };
    });
  }

  private _answer<T>(make: () => T): Promise<T> {
    return this.failure
      ? Promise.reject(this.failure)
      : Promise.resolve(make());
  }
}
