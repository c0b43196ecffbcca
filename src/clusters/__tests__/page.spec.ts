import { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { filledDialog, until } from '../../__tests__/until';
import { IClusterClient } from '../client';
import type { ClusterPage } from '../page';
import { pageOf } from './clusterFakes';
import { NODE } from './fakes';
import {
  ICluster,
  IClusterDetail,
  IJobOrder,
  IJobResult,
  ITablePage,
  ITableQuery,
  TableKind,
  TableRow
} from '../types';

class FakeClusterClient implements IClusterClient {
  readonly queries: [TableKind, ITableQuery][] = [];
  /** The finished jobs, once the accounting has answered. */
  accounting: Promise<ITablePage> | null = null;

  actions: readonly string[] = [];
  changes: readonly string[] = ['time_limit', 'queue'];
  readonly orders: IJobOrder[] = [];
  results: readonly IJobResult[] = [];

  readonly list = jest.fn();
  async cluster(): Promise<IClusterDetail> {
    const [cluster] = await this.configured();
    return answerOf('ClusterDetail', { cluster });
  }

  readonly overview = jest.fn(() =>
    Promise.resolve(
      answerOf('ClusterOverview', {
        nodes: [
          answerOf('NodeTile', {
            name: 'n1',
            gpus: 8,
            used: 4,
            shares: [{ job: '7', gpus: 4 }]
          })
        ],
        running: [
          answerOf('Job', { scheduler_id: '7', name: 'mine', run_id: 'r1' })
        ]
      })
    )
  );
  readonly governance = jest.fn();

  asOf = '2026-11-26T09:00:00Z';
  /** How often the clusters were read since it changed. */
  rows = 0;

  configured(): Promise<readonly ICluster[]> {
    const { actions, asOf: as_of, changes } = this;
    this.rows += 1;
    const local = { actions, as_of, changes, configured: true, name: 'local' };
    return Promise.resolve([answerOf('Cluster', local)]);
  }

  act(_: string, order: IJobOrder): Promise<readonly IJobResult[]> {
    this.orders.push(order);
    return Promise.resolve(this.results);
  }

  queues(): Promise<readonly string[]> {
    return Promise.resolve(['dev', 'batch']);
  }

  table(_: string, kind: TableKind, query: ITableQuery): Promise<ITablePage> {
    this.queries.push([kind, query]);
    if (kind === 'nodes') {
      const rows = [answerOf('ClusterNode', NODE)];
      return Promise.resolve({ rows, next: null, total: 1 });
    }
    if (kind === 'ended' && this.accounting) {
      return this.accounting;
    }
    if (kind !== 'jobs') {
      return Promise.resolve({ rows: [], next: null, total: 0 });
    }
    const rows: TableRow[] = [
      { scheduler_id: '7', name: 'mine', state: 'running', run_id: 'r1' },
      { scheduler_id: '8', name: 'theirs', state: 'running', user: 'bob' }
    ];
    return Promise.resolve({ rows, next: 'c2', total: 120 });
  }

  kinds(): TableKind[] {
    return this.queries.map(([kind]) => kind);
  }

  last(kind: TableKind): ITableQuery | undefined {
    return this.queries.filter(([one]) => one === kind).pop()?.[1];
  }
}

/** Nothing is being read. */
async function settled(page: ClusterPage): Promise<void> {
  await until(() => page.node.querySelector('table') !== null);
  await until(() => page.node.querySelector('[aria-busy="true"]') === null);
}

/** Choose a tab. */
async function show(page: ClusterPage, tab: string): Promise<void> {
  const before = page.node.querySelector('table');
  button(page, tab).click();
  await until(() => page.node.querySelector('table') !== before);
  await settled(page);
}

function titles(page: ClusterPage): (string | null)[] {
  return Array.from(page.node.querySelectorAll('th')).map(
    head => head.textContent
  );
}

function button(page: Widget, text: string): HTMLButtonElement {
  const found = Array.from(page.node.querySelectorAll('button')).find(
    item => item.textContent === text
  );
  if (!found) {
    throw new Error(`there is no button ${text}`);
  }
  return found;
}

describe('ClusterPage', () => {
  let client: FakeClusterClient;
  let page: ClusterPage;
  let opened: string[];

  beforeEach(async () => {
    client = new FakeClusterClient();
    opened = [];
    page = pageOf(client, {
      cluster: 'local',
      openRun: runId => opened.push(runId)
    });
    Widget.attach(page, document.body);
    await until(() => page.node.querySelector('button') !== null);
    await show(page, 'Queues');
  });

  afterEach(() => page.dispose());

  it('asks only for what is shown', async () => {
    expect(client.kinds()).toEqual(['queues']);
    await show(page, 'Nodes');
    expect(client.kinds()).toEqual(['queues', 'nodes']);
  });

  it('goes round by the arrow keys', async () => {
    const tab = button(page, 'Queues');
    const press = (key: string) =>
      document.activeElement?.dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true })
      );
    tab.focus();
    press('ArrowLeft');
    await until(() => document.activeElement?.textContent === 'Jobs');
    press('ArrowLeft');
    await until(() => document.activeElement?.textContent === 'Overview');
    press('ArrowLeft');
    await until(() => document.activeElement?.textContent === 'Nodes');
    press('ArrowRight');
    await until(() => document.activeElement?.textContent === 'Overview');
    press('ArrowRight');
    await until(() => document.activeElement?.textContent === 'Jobs');
    press('ArrowRight');
    await until(() => document.activeElement?.textContent === 'Queues');
    expect(document.activeElement?.getAttribute('aria-selected')).toBe('true');
  });

  it('shows each GPU of a node, and says the same in words', async () => {
    await show(page, 'Nodes');
    const squares = page.node.querySelectorAll('.jp-HyperPod-Devices-one');
    const uses = Array.from(squares).map(one => one.getAttribute('data-use'));
    expect(uses).toEqual(['used', 'shared', 'off', 'used']);
    const label = page.node
      .querySelector('[role="img"]')
      ?.getAttribute('aria-label');
    expect(label).toBe('H100: 0 of 4 free; in use: 0, 3; partly in use: 1');
    expect(page.node.textContent).toContain('fpga: 0 of 2');
  });

  it('says why a node takes no jobs, since when and by whom', async () => {
    await show(page, 'Nodes');
    expect(page.node.textContent).toContain('disk = "full" (root, ');
    expect(page.node.textContent).toContain('drained');
  });

  it('shows all about a node beside the table', async () => {
    await show(page, 'Nodes');
    button(page, 'n1').click();
    const drawer = () => page.node.querySelector('aside');
    await until(() => Boolean(drawer()?.querySelector('dl')));
    expect(drawer()?.getAttribute('aria-label')).toBe('Node n1');
    expect(drawer()?.textContent).toContain('disk = "full"');
    expect(drawer()?.textContent).toContain('4 GPUs');
    button(page, 'mine').click();
    expect(opened).toEqual(['r1']);
    drawer()?.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })
    );
    await until(() => drawer() === null);
  });

  it('reads what is shown again whenever the scheduler was asked again', async () => {
    const asked = client.kinds().length;
    client.asOf = '2026-11-26T10:00:00Z';
    client.rows = 0;
    await until(() => client.kinds().length > asked);
    const again = client.kinds().length;
    await until(() => client.rows > 5);
    expect(client.kinds()).toHaveLength(again);
  });

  it('leaves out columns in which nothing stands', async () => {
    await show(page, 'Nodes');
    expect(titles(page)).toContain('Reason');
    expect(titles(page)).not.toContain('Instance group');
    expect(titles(page)).not.toContain('Features');
  });

  it('shows what ended: own runs, which have one order, and all jobs', async () => {
    await show(page, 'Jobs');
    button(page, 'Finished').click();
    await until(() => client.last('ended') !== undefined);
    const user = page.node.querySelector('input[aria-label="User"]');
    Object.getOwnPropertyDescriptor(
      HTMLInputElement.prototype,
      'value'
    )?.set?.call(user, 'alice');
    user?.dispatchEvent(new Event('input', { bubbles: true }));
    await until(() => client.last('ended')?.filter === 'alice');
    button(page, 'My finished runs').click();
    await until(() => client.last('runs') !== undefined);
    await until(() => page.node.querySelector('input[type="search"]') === null);
  });

  it('waits for a slow accounting, and asks it again only by the button', async () => {
    let answer: (page: ITablePage) => void = () => undefined;
    client.accounting = new Promise(resolve => (answer = resolve));
    const asked = () => client.kinds().filter(kind => kind === 'ended').length;
    const refresh = () =>
      page.node
        .querySelector<HTMLButtonElement>('button[aria-label="Refresh"]')
        ?.click();
    await show(page, 'Jobs');
    button(page, 'Finished').click();
    await until(() => asked() === 1);
    refresh();
    client.asOf = '2026-11-26T10:00:00Z';
    client.rows = 0;
    await until(() => client.rows > 3);
    refresh();
    expect(asked()).toBe(1);
    answer({ rows: [{ name: 'over' }], next: null, total: null });
    await until(() => Boolean(page.node.textContent?.includes('over')));
    await until(() => {
      refresh(); // does nothing while the answer before is on its way
      return asked() === 2;
    });
  });

  it('has the server sort, and turns the order round', async () => {
    await show(page, 'Jobs');
    button(page, 'User').click();
    await until(() => client.last('jobs')?.sort === 'user');
    button(page, 'User').click();
    await until(() => client.last('jobs')?.sort === '-user');
    const sorted = page.node.querySelector('[aria-sort="descending"]');
    expect(sorted?.textContent).toBe('User');
  });

  it('pages by the server’s cursor and back', async () => {
    await show(page, 'Jobs');
    button(page, 'Next page').click();
    await until(() => client.last('jobs')?.cursor === 'c2');
    button(page, 'Previous page').click();
    await until(() => client.last('jobs')?.cursor === undefined);
    expect(page.node.textContent).toContain('Page 1');
  });

  it('says what it means that there is nothing, and opens runs of ours', async () => {
    expect(page.node.textContent).toContain('This cluster has no queues.');
    await show(page, 'Jobs');
    button(page, 'mine').click();
    expect(opened).toEqual(['r1']);
  });

  describe('with actions on jobs', () => {
    function boxes(): HTMLInputElement[] {
      return Array.from(page.node.querySelectorAll('input[type="checkbox"]'));
    }

    function results(): (string | null)[] {
      const lines = page.node.querySelectorAll('.jp-HyperPod-Results li');
      return Array.from(lines).map(line => line.textContent);
    }

    /** Answer the question that is asked. */
    async function answer(text: string): Promise<HTMLElement> {
      const find = () =>
        Array.from(
          document.querySelectorAll<HTMLElement>('.jp-Dialog button')
        ).find(item => item.textContent === text);
      const dialog = await filledDialog();
      await until(() => find() !== undefined);
      find()?.click();
      return dialog;
    }

    beforeEach(async () => {
      client.actions = ['cancel', 'hold', 'change', 'explode'];
      client.results = answerOf('JobResults', {
        results: [
          { scheduler_id: '7', ok: true, error: null },
          {
            scheduler_id: '8',
            ok: false,
            error: { code: 'denied', message: 'job 8 is bob’s', hint: null }
          }
        ]
      }).results;
      await show(page, 'Jobs');
      await until(() => boxes().length === 3);
    });

    afterEach(() => Dialog.flush());

    function isOff(name: string): boolean {
      return button(page, name).getAttribute('aria-disabled') === 'true';
    }

    it('offers what the cluster can do, once something is chosen', async () => {
      expect(page.node.textContent).not.toContain('Requeue');
      expect(isOff('Hold')).toBe(true);
      boxes()[2].click();
      await until(() => !isOff('Hold'));
      expect(boxes()[0].indeterminate).toBe(true);
      expect(page.node.textContent).toContain('1 job selected');
    });

    it('has one result for each job, and keeps those chosen that failed', async () => {
      boxes()[0].click();
      await until(() => !isOff('Hold'));
      const asked = client.queries.length;
      button(page, 'Hold').click();
      await until(() => results().length === 2);
      expect(client.orders).toEqual([{ action: 'hold', jobs: ['7', '8'] }]);
      expect(results()).toEqual([
        '7 was held.',
        '8 could not be held. job 8 is bob’s'
      ]);
      await until(() => client.queries.length > asked);
      await until(() => boxes().filter(box => box.checked).length === 1);
      expect(boxes()[2].checked).toBe(true);
      button(page, 'Close').click();
      await until(() => results().length === 0);
    });

    it('asks before it cancels, naming the jobs', async () => {
      boxes()[0].click();
      await until(() => !isOff('Cancel'));
      button(page, 'Cancel').click();
      const dialog = await answer('Let it run');
      expect(dialog.textContent).toContain('8 (theirs, of bob)');
      await until(() => document.querySelector('.jp-Dialog') === null);
      expect(client.orders).toEqual([]);
    });

    it('asks what to change', async () => {
      boxes()[1].click();
      await until(() => !isOff('Change…'));
      button(page, 'Change…').click();
      const find = () =>
        document.querySelectorAll<HTMLInputElement>('.jp-Dialog input');
      await until(() => find().length === 1);
      // Those of the cluster, and that nothing is to be changed.
      await until(
        () => document.querySelectorAll('.jp-Dialog option').length === 3
      );
      find()[0].value = ' 2h ';
      await answer('Change');
      await until(() => client.orders.length === 1);
      expect(client.orders[0]).toEqual({
        action: 'change',
        jobs: ['7'],
        change: { time_limit: '2h', queue: null }
      });
    });

    it('asks for no more than can be changed there', async () => {
      client.changes = ['queue'];
      await show(page, 'Nodes');
      await show(page, 'Jobs');
      await until(() => boxes().length === 3);
      boxes()[1].click();
      await until(() => !isOff('Change…'));
      button(page, 'Change…').click();
      const find = () => document.querySelectorAll('.jp-Dialog label > span');
      await until(() => find().length > 0);
      expect(Array.from(find()).map(label => label.textContent)).toEqual([
        'Queue'
      ]);
      const header = (await filledDialog()).querySelector('.jp-Dialog-header');
      expect(header?.textContent).toBe('Change the queue');
      const dialog = await answer('Cancel');
      expect(dialog.textContent).not.toContain('limit');
      expect(client.orders).toEqual([]);
    });
  });
});
