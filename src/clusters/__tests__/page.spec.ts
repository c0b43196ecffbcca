import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { IClusterClient } from '../client';
import { ClusterPage } from '../page';
import { ICluster, ITablePage, ITableQuery, TableKind } from '../types';

const trans = nullTranslator.load('hyperpod_jlab');

class FakeClusterClient implements IClusterClient {
  readonly queries: [TableKind, ITableQuery][] = [];

  list(): Promise<readonly ICluster[]> {
    return Promise.resolve([]);
  }

  table(_: string, kind: TableKind, query: ITableQuery): Promise<ITablePage> {
    this.queries.push([kind, query]);
    if (kind !== 'jobs') {
      return Promise.resolve({ rows: [], next: null, total: 0 });
    }
    const rows = [
      { scheduler_id: '7', name: 'mine', state: 'running', run_id: 'r1' }
    ];
    return Promise.resolve({ rows, next: 'c2', total: 120 });
  }

  last(kind: TableKind): ITableQuery | undefined {
    return this.queries.filter(([one]) => one === kind).pop()?.[1];
  }
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
    page = new ClusterPage({
      cluster: 'local',
      client,
      openRun: runId => opened.push(runId),
      trans
    });
    Widget.attach(page, document.body);
    await until(() => page.node.querySelectorAll('table').length === 3);
    await until(() => page.node.querySelector('[aria-busy="true"]') === null);
  });

  afterEach(() => page.dispose());

  it('has the server sort, and turns the order round', async () => {
    button(page, 'User').click();
    await until(() => client.last('jobs')?.sort === 'user');
    button(page, 'User').click();
    await until(() => client.last('jobs')?.sort === '-user');
    const sorted = page.node.querySelector('[aria-sort="descending"]');
    expect(sorted?.textContent).toBe('User');
  });

  it('pages by the server’s cursor and back', async () => {
    button(page, 'Next page').click();
    await until(() => client.last('jobs')?.cursor === 'c2');
    button(page, 'Page before').click();
    await until(() => client.last('jobs')?.cursor === undefined);
    expect(page.node.textContent).toContain('Page 1');
  });

  it('says what it means that there is nothing, and opens runs of ours', () => {
    expect(page.node.textContent).toContain('This cluster has no queues.');
    button(page, 'mine').click();
    expect(opened).toEqual(['r1']);
  });
});
