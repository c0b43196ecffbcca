import { Clipboard } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { FakeNodeClient } from '../../nodes/__tests__/fakes';
import type { ClusterPage } from '../page';
import {
  detail,
  FakeClusterClient,
  GOVERNANCE,
  NODE,
  nodes,
  pageOf,
  row
} from './clusterFakes';

/** A cluster on EKS with its description, as the server sends it. */
function onEks(): Record<string, unknown> {
  const cluster = { ...row('ml-cluster'), orchestrator: 'kubernetes' };
  return { ...detail('ml-cluster'), cluster };
}

describe('The page of a HyperPod cluster', () => {
  let client: FakeClusterClient;
  let nodeClient: FakeNodeClient;
  let page: ClusterPage;
  let connect: jest.Mock;

  beforeEach(() => {
    client = new FakeClusterClient();
    nodeClient = new FakeNodeClient();
    connect = jest.fn();
    page = pageOf(client, { nodeClient, connect });
  });

  afterEach(() => page.dispose());

  function text(): string {
    return page.node.textContent ?? '';
  }

  async function show(): Promise<void> {
    Widget.attach(page, document.body);
    await until(() => text() !== '' && !text().includes('Loading'));
  }

  function press(name: string): void {
    const found = Array.from(page.node.querySelectorAll('button')).find(
      button =>
        button.textContent === name ||
        button.getAttribute('aria-label') === name
    );
    found?.click();
  }

  async function showNodes(): Promise<void> {
    await show();
    press('Nodes');
    await until(() => text().includes(NODE.name));
  }

  it('has only the tabs that can work', async () => {
    await show();
    const tabs = () =>
      Array.from(page.node.querySelectorAll('[role="tab"]')).map(
        tab => tab.textContent
      );
    await until(() => tabs().length === 3);
    expect(tabs()).toEqual(['Overview', 'Nodes', 'Metrics']);
  });

  it('shows what the cluster is', async () => {
    await show();
    for (const words of ['in service', '3 of 4', 'degraded', 'spot']) {
      expect(text()).toContain(words);
    }
    expect(text()).toContain('s3://scripts/on_create.sh');
    expect(text()).toContain('teamvision');
    expect(text()).toContain('HyperPod reboots or replaces failed nodes');
    expect(text()).toContain('Updated ');
  });

  it('links to the consoles that there are, in a tab of their own', async () => {
    await show();
    const links = Array.from(page.node.querySelectorAll('a'));
    expect(links.map(link => link.href)).toEqual([
      'https://us-west-2.console.aws.amazon.com/c',
      'https://us-west-2.console.aws.amazon.com/l'
    ]);
    expect(links.every(link => link.rel === 'noopener noreferrer')).toBe(true);
  });

  it('asks AWS when the user wants it, and keeps what it has when that fails', async () => {
    await show();
    client.failure = ApiError.local('aws_throttled', 'too many calls', 502);
    press('Refresh');
    await until(() => text().includes('too many calls'));
    expect(client.asked.filter(([what]) => what === 'ml-cluster')).toEqual([
      ['ml-cluster', false],
      ['ml-cluster', true]
    ]);
    expect(text()).toContain('workers');
  });

  it('shows nothing of a cluster that was deleted, and says so once', async () => {
    await show();
    client.failure = nodeClient.abilityFailure = ApiError.local(
      'not_found',
      'Cluster ml-cluster not found.',
      404
    );
    const said = () => text().split('not found').length - 1;
    press('Refresh');
    await until(() => said() > 0);
    expect(said()).toBe(1);
    expect(text()).not.toContain('in service');
    expect(page.node.querySelector('[role=tab]')).toBeNull();
  });

  it('takes the rows away of a cluster that was deleted while they were shown', async () => {
    await showNodes();
    client.failure = ApiError.local('not_found', 'it is gone', 404);
    press('Refresh');
    await until(() => text().includes('it is gone'));
    expect(text()).not.toContain(NODE.name);
  });

  it('says how old it is when the server could ask nothing newer', async () => {
    const problem = { code: 'x', message: 'no right', hint: 'ask', detail: {} };
    const reason = 'Lifecycle scripts failed';
    client.detail = {
      ...detail('ml-cluster', { reason }),
      problem,
      tags: null
    };
    await show();
    expect(text()).toContain('Newer data is not available');
    expect(text()).toContain('no right');
    expect(text()).toContain(reason);
  });

  it('says why AWS does not describe a cluster', async () => {
    const problem = { code: 'missing_right', message: 'no right', hint: 'ask' };
    const cluster = { name: 'train', configured: true };
    client.detail = { cluster, problem };
    await show();
    expect(text()).toContain('no right');
    client.detail = { cluster };
    press('Refresh');
    await until(() => !text().includes('no right'));
  });

  it('shows its instances beside the scheduler’s nodes', async () => {
    await showNodes();
    const chips = page.node.querySelectorAll('td .jp-HyperPod-StateChip');
    expect(Array.from(chips).map(chip => chip.textContent)).toEqual([
      'drained',
      'failed'
    ]);
    expect(text()).toContain('EC2 health check failed');
    expect(text()).toContain('security update required');
    expect(text()).toContain('0 of 8');
    expect(text()).toContain('Job ids');
    expect(client.queries[0].refresh).toBe(false);
  });

  it('has what AWS knows alone without columns for the scheduler, and says it once', async () => {
    const { instance, instance_reason: reason } = NODE;
    const alone = { ...NODE, accelerators: 0, accelerators_free: null };
    client.nodeAnswer = nodes([
      { ...alone, name: instance, state: 'failed', reason, jobs: [] }
    ]);
    await show();
    press('Nodes');
    await until(() => text().includes(instance));
    const heads = Array.from(page.node.querySelectorAll('th'));
    const titles = heads.map(head => head.textContent);
    for (const title of ['Instance', 'Instance state', 'Job ids']) {
      expect(titles).not.toContain(title);
    }
    expect(titles).toContain('Instance group');
    expect(text().split(reason).length).toBe(2);
    const chip = page.node.querySelector('td .jp-HyperPod-StateChip');
    expect(chip?.textContent).toBe('failed');
  });

  it('shows the first nodes at once, and asks again while more come', async () => {
    const page100 = { loading: true, next: 'c2', total: 100 };
    client.nodeAnswer = nodes([NODE], page100);
    await showNodes();
    expect(text()).toContain('100 rows');
    expect(text()).toContain('Refreshing…');
    client.nodeAnswer = nodes([NODE], { next: 'c2', total: 6758 });
    await until(() => text().includes('6758 rows'));
    // No row went away meanwhile, and AWS was not asked for each look.
    expect(client.queries.every(query => !query.refresh)).toBe(true);
  });

  it('says what is missing to submit from here, and what to add', async () => {
    const reach = {
      word: 'no-login-node',
      sentence: 'its login nodes are not configured',
      next_step: 'hpj config add ml-cluster --login-node USER@HOST',
      config: '[clusters.ml-cluster]'
    };
    client.detail = detail('ml-cluster', { reach });
    await show();
    for (const words of Object.values(reach).slice(1)) {
      expect(text()).toContain(words);
    }
    const copied = jest.spyOn(Clipboard, 'copyToSystem').mockImplementation();
    press('Copy');
    expect(copied).toHaveBeenCalledWith('[clusters.ml-cluster]');
  });

  it('shows settings that are newer than this as they come', async () => {
    const settings = [{ name: 'NewMode', value: '{"A": 1}', meaning: null }];
    client.detail = detail('ml-cluster', { settings });
    await show();
    expect(text()).toContain('NewMode{"A": 1}');
  });

  it('shows the task governance, which is asked for only then', async () => {
    client.detail = onEks();
    await show();
    expect(client.asked.some(([what]) => what.includes('/'))).toBe(false);
    press('Settings');
    await until(() => text().includes('ml.g5.8xlarge'));
    for (const words of [
      '4 × ml.g5.8xlarge',
      'borrows up to 50 %',
      'shared by team weight',
      'cannot be borrowed',
      'training-priority',
      'unknown'
    ]) {
      expect(text()).toContain(words);
    }
    press('Refresh');
    const governance = () =>
      client.asked.filter(([what]) => what.includes('governance'));
    await until(() => governance().length === 2);
    expect(governance()[1]).toEqual(['ml-cluster/governance', true]);
    const { quotas } = GOVERNANCE;
    const flavor = 'ml.g5.8xlarge';
    const used = [
      {
        flavor,
        resource: 'gpu',
        nominal: 4,
        used: 5,
        borrowed: 1,
        free: 0,
        most: 6
      }
    ];
    client.governanceAnswer = {
      ...GOVERNANCE,
      quotas: [{ ...quotas[0], used, running: 3, waiting: 2 }]
    };
    await until(() => {
      press('Refresh'); // does nothing while the answer before is on its way
      return text().includes('3 running, 2 waiting');
    });
    expect(text()).toContain('1 of it borrowed');
  });

  it('says why a cluster has no task governance', async () => {
    client.detail = onEks();
    await show();
    client.failure = ApiError.local('no_governance', 'clusters on EKS', 422);
    press('Settings');
    await until(() => text().includes('clusters on EKS'));
    expect(page.node.querySelector('[role=note]')?.textContent).toBe(
      'clusters on EKS'
    );
    expect(page.node.querySelector('[role=alert]')).toBeNull();
    expect(text()).not.toContain('Try again');
  });

  it('asks nothing while it is hidden', async () => {
    client.nodeAnswer = nodes([NODE], { loading: true });
    await showNodes();
    page.hide();
    const asked = client.queries.length;
    await new Promise(resolve => setTimeout(resolve, 2500));
    expect(client.queries.length).toBe(asked);
    page.show();
    await until(() => client.queries.length > asked);
  });
});
