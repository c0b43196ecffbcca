import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { FakeNodeClient } from '../../nodes/__tests__/fakes';
import { HyperpodPage } from '../page';
import { FakeEventClient } from './eventFakes';
import { AGED, detail, FakeHyperpodClient, NODE } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

describe('HyperpodPage', () => {
  let client: FakeHyperpodClient;
  let page: HyperpodPage;
  let showMetrics: jest.Mock;

  beforeEach(() => {
    client = new FakeHyperpodClient();
    showMetrics = jest.fn();
    page = new HyperpodPage({
      cluster: 'ml-cluster',
      client,
      nodeClient: new FakeNodeClient(),
      openTerminal: jest.fn(),
      openLogs: jest.fn(),
      eventClient: new FakeEventClient(),
      showMetrics,
      trans
    });
  });

  afterEach(() => page.dispose());

  function text(): string {
    return page.node.textContent ?? '';
  }

  async function show(): Promise<void> {
    Widget.attach(page, document.body);
    await until(() => text() !== '' && !text().includes('Reading'));
  }

  function press(name: string): void {
    const found = Array.from(page.node.querySelectorAll('button')).find(
      button => button.textContent === name
    );
    found?.click();
  }

  async function showNodes(): Promise<void> {
    await show();
    press('Nodes');
    await until(() => text().includes(NODE.name));
  }

  it('opens its metrics', async () => {
    await show();
    press('Metrics');
    expect(showMetrics).toHaveBeenCalledTimes(1);
  });

  it('shows what the cluster is', async () => {
    await show();
    for (const words of ['in service', '3 of 4', 'degraded', 'spot']) {
      expect(text()).toContain(words);
    }
    expect(text()).toContain('s3://scripts/on_create.sh');
    expect(text()).toContain('teamvision');
    expect(text()).toContain('are repaired by HyperPod');
    expect(text()).toContain('AWS was asked');
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
    expect(client.asked).toEqual([
      ['ml-cluster', false],
      ['ml-cluster', true]
    ]);
    expect(text()).toContain('workers');
  });

  it('says how old it is when the server could ask nothing newer', async () => {
    const problem = { code: 'x', message: 'no right', hint: 'ask', detail: {} };
    const reason = 'Lifecycle scripts failed';
    client.detail = detail('ml-cluster', { problem, reason, tags: null });
    await show();
    expect(text()).toContain('AWS does not tell anything newer');
    expect(text()).toContain('no right');
    expect(text()).toContain(reason);
  });

  it('shows its instances beside the scheduler’s nodes', async () => {
    await showNodes();
    const chips = page.node.querySelectorAll('td .jp-HyperPod-StateChip');
    expect(Array.from(chips).map(chip => chip.textContent)).toEqual([
      'failed',
      'drained'
    ]);
    expect(text()).toContain('EC2 health check failed');
    expect(text()).toContain('security update required');
    expect(text()).toContain('0 of 8');
    expect(client.queries[0].refresh).toBe(false);
    press('Refresh');
    await until(() => client.queries.length === 2);
    expect(client.queries[1].refresh).toBe(true);
  });

  it('has what AWS knows alone without columns for the scheduler', async () => {
    const alone = { node: null, scheduler_state: null, accelerators: null };
    const nodes = [{ ...NODE, ...alone, accelerators_free: null, jobs: [] }];
    client.nodeAnswer = { ...AGED, nodes, next: null, total: 1 };
    await showNodes();
    const heads = Array.from(page.node.querySelectorAll('th'));
    expect(heads.map(head => head.textContent)).not.toContain('Scheduler');
    expect(heads.map(head => head.textContent)).not.toContain('Jobs');
  });

  it('shows the first nodes at once, and asks again while more come', async () => {
    client.nodeAnswer = {
      ...AGED,
      loading: true,
      nodes: [NODE],
      next: 'c2',
      total: 100
    };
    await showNodes();
    expect(text()).toContain('100 rows');
    expect(text()).toContain('more is on its way');
    client.nodeAnswer = { ...AGED, nodes: [NODE], next: 'c2', total: 6758 };
    await until(() => text().includes('6758 rows'));
    // No row went away meanwhile, and AWS was not asked for each look.
    expect(client.queries.every(query => !query.refresh)).toBe(true);
  });

  it('asks nothing while it is hidden', async () => {
    client.nodeAnswer = {
      ...AGED,
      loading: true,
      nodes: [NODE],
      next: null,
      total: 1
    };
    await showNodes();
    page.hide();
    const asked = client.queries.length;
    await new Promise(resolve => setTimeout(resolve, 2500));
    expect(client.queries.length).toBe(asked);
    page.show();
    await until(() => client.queries.length > asked);
  });
});
