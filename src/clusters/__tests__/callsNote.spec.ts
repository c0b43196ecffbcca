import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ClustersSection } from '../../panel/clustersSection';
import { RegionChoice } from '../../hyperpod/regions';
import { IClusterClient } from '../client';
import { ClustersModel } from '../model';
import { FakeNodeClient } from '../../nodes/__tests__/fakes';
import { ClusterPage } from '../page';

const trans = nullTranslator.load('hyperpod_jlab');

const NONE = answerOf('Cluster', {
  name: 'local',
  configured: true,
  state: 'up',
  detail: { gpus: 0 }
});
const ASKED = answerOf('Cluster', {
  name: 'slurm',
  configured: true,
  state: 'up',
  detail: { scheduler_calls: 2 }
});

const client = {
  list: () =>
    Promise.resolve(answerOf('ClusterPage', { clusters: [NONE, ASKED] })),
  configured: () => Promise.resolve([NONE, ASKED]),
  overview: () => Promise.resolve(answerOf('ClusterOverview')),
  table: () => Promise.resolve({ rows: [], next: null, total: 0 })
} as unknown as IClusterClient;

it('the panel says how often a scheduler was asked, where there is one', async () => {
  const model = new ClustersModel(
    client,
    new RegionChoice({ get: () => new Promise(() => undefined) })
  );
  const actions = {
    openCluster: jest.fn(),
    openHyperpodCluster: jest.fn(),
    openDoctor: jest.fn(),
    openAdmin: jest.fn(),
    openRun: jest.fn(),
    openPartition: jest.fn(),
    openLifecycleLog: jest.fn()
  };
  const section = new ClustersSection(model, actions, trans);
  Widget.attach(section, document.body);
  model.start();
  await until(() => section.node.querySelectorAll('li').length === 2);
  const lines = Array.from(section.node.querySelectorAll('li')).map(
    line => line.textContent
  );
  expect(lines[0]).not.toContain('scheduler call');
  expect(lines[1]).toContain('2 scheduler calls in the last minute');
  section.dispose();
  model.dispose();
});

it.each([
  ['slurm', '2 scheduler calls in the last minute'],
  ['local', '']
])('the page of %s says “%s”', async (cluster, text) => {
  const page = new ClusterPage({
    cluster,
    client,
    nodeClient: new FakeNodeClient(),
    runChanged: new Signal({}),
    openRun: jest.fn(),
    openTerminal: jest.fn(),
    openLogs: jest.fn(),
    trans
  });
  Widget.attach(page, document.body);
  await until(() => page.node.querySelector('[role="tablist"]') !== null);
  if (text) {
    await until(() => (page.node.textContent ?? '').includes(text));
  }
  expect((page.node.textContent ?? '').includes('scheduler call')).toBe(
    text !== ''
  );
  page.dispose();
});
