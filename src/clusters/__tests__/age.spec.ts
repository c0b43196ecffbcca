import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IClusterClient } from '../client';
import type { ClusterPage } from '../page';
import { ITablePage } from '../types';
import { pageOf as fakePage } from './clusterFakes';

const PROBLEM = {
  code: 'controller_down',
  message: 'Slurm: Unable to contact slurm controller',
  hint: 'try again in a while',
  detail: {}
};

function secondsAgo(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString();
}

/** A page of a cluster that was seen some time ago. */
async function pageOf({
  queues = [{ name: 'dev' }],
  ...page
}: Partial<ITablePage> & {
  queues?: readonly object[];
}): Promise<ClusterPage> {
  const client = {
    configured: () => Promise.resolve([]),
    cluster: () => new Promise(() => undefined),
    overview: () => Promise.resolve(answerOf('ClusterOverview')),
    queues: () => Promise.resolve([]),
    act: () => Promise.resolve([]),
    table: () =>
      Promise.resolve({
        rows: queues.map(queue => answerOf('Queue', queue)),
        next: null,
        total: null,
        ...page
      })
  } as unknown as IClusterClient;
  const shown = fakePage(client, { cluster: 'ml' });
  Widget.attach(shown, document.body);
  const queuesTab = () =>
    Array.from(shown.node.querySelectorAll('button')).find(
      item => item.textContent === 'Queues'
    );
  await until(() => queuesTab() !== undefined);
  queuesTab()?.click();
  return shown;
}

describe('A table of a cluster that does not answer', () => {
  it('shows the rows that were seen last, their age and why', async () => {
    const page = await pageOf({ as_of: secondsAgo(40), problem: PROBLEM });
    await until(() => page.node.textContent?.includes('dev') ?? false);
    const text = page.node.textContent ?? '';
    expect(text).toMatch(/Updated 4[01] s ago\. Newer data is not available\./);
    expect(text).toContain(PROBLEM.message);
    expect(text).toContain(PROBLEM.hint);
    page.dispose();
  });

  it('says what of the table is hidden from the user', async () => {
    const note = 'the quotas are hidden from you: the right to list is missing';
    const quota = { flavor: 'h100', resource: 'nvidia.com/gpu' };
    const page = await pageOf({
      notes: [note],
      queues: [
        {
          name: 'dev',
          quotas: [
            { ...quota, free: 2, most: 6, nominal: 4, used: 2, borrowed: 0 }
          ]
        }
      ]
    });
    await until(() => page.node.textContent?.includes('dev') ?? false);
    expect(page.node.querySelector('[role="note"]')?.textContent).toBe(note);
    expect(page.node.textContent).toContain(
      'nvidia.com/gpu: 2 of 4 in use; 2 free; at most 6'
    );
    page.dispose();
  });

  it('shows no table of which all is hidden', async () => {
    const page = await pageOf({ notes: ['the queues are hidden'], queues: [] });
    await until(() => page.node.querySelector('[role="note"]') !== null);
    expect(page.node.querySelector('table')).toBeNull();
    page.dispose();
  });

  it('leaves the age to the page’s head while the cluster answers', async () => {
    const page = await pageOf({ as_of: null, problem: null });
    await until(() => page.node.textContent?.includes('dev') ?? false);
    expect(page.node.textContent).not.toContain('ago');
    page.dispose();
  });
});

describe('A cluster that does not answer', () => {
  it('says of when its numbers are', () => {
    const at = secondsAgo(40);
    expect(
      answerOf('Cluster', { name: 'ml', default: true, as_of: at }).as_of
    ).toBe(at);
  });
});
