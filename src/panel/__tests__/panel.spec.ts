import { nullTranslator } from '@jupyterlab/translation';
import { AccordionPanel, Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { AdminRights } from '../../admin/rights';
import { ApiError } from '../../api';
import { ClustersModel } from '../../clusters/model';
import { FakeClusterClient, list } from '../../clusters/__tests__/clusterFakes';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { IHyperPod } from '../../tokens';
import { RegionChoice } from '../../clusters/regions';
import { HyperPodPanel } from '../panel';

const cluster = answerOf('Cluster', {
  name: 'local',
  configured: true,
  orchestrator: 'local',
  default: true,
  state: 'up',
  nodes: 1,
  running: 2,
  waiting: 3
});

async function shownPanel(
  client: FakeRunClient,
  opened: string[] = [],
  shown = cluster,
  problem: unknown = null,
  clusterClient = new FakeClusterClient()
): Promise<HyperPodPanel> {
  clusterClient.answer = {
    ...list(shown),
    ...(problem !== null && { problem, as_of: null })
  };
  const runs = new RunsModel({ client });
  const hyperPod = {
    clusterClient,
    regions: new RegionChoice({ get: () => new Promise(() => undefined) }),
    runs,
    adminRights: new AdminRights({
      rights: () => new Promise(() => undefined)
    }),
    trans: nullTranslator.load('hyperpod_jlab')
  } as unknown as IHyperPod;
  const actions = {
    openCluster: (name: string) => opened.push(name),
    openHyperpodCluster: (name: string) => opened.push(name),
    openDoctor: () => opened.push('doctor'),
    openAdmin: () => opened.push('admin'),
    openRun: (runId: string) => opened.push(runId),
    openPartition: () => opened.push('partition'),
    openLifecycleLog: () => opened.push('log')
  };
  const panel = new HyperPodPanel(hyperPod, actions, nullTranslator);
  panel.disposed.connect(() => runs.dispose());
  expect(client.calls).toEqual([]);
  Widget.attach(panel, document.body);
  const chip = `[data-state="${shown.state}"]`;
  await until(() => panel.node.querySelector(chip) !== null);
  await until(() => !(panel.node.textContent ?? '').includes('Loading…'));
  return panel;
}

describe('HyperPodPanel', () => {
  it('tells what of a cluster is hidden, and why one is misconfigured', async () => {
    const notes = ['nodes are hidden from you', 'Jobs are hidden from you'];
    const hidden = { ...cluster, notes };
    let panel = await shownPanel(new FakeRunClient(), [], hidden);
    expect(panel.node.textContent).toContain(notes.join('; '));
    panel.dispose();
    const lost = { ...cluster, state: 'misconfigured', reason: 'no namespace' };
    panel = await shownPanel(new FakeRunClient(), [], lost);
    expect(panel.node.textContent).toContain('no namespace');
    expect(panel.node.textContent).toContain('misconfigured');
    panel.dispose();
  });

  it('lists clusters and runs, and opens them', async () => {
    const client = new FakeRunClient();
    client.runs = [run(2, { state: 'failed', reason: 'it fell' }), run(1)];
    const opened: string[] = [];
    const panel = await shownPanel(client, opened);
    expect(panel.node.textContent).toContain('it fell');
    const chips = panel.node.querySelectorAll('.jp-HyperPod-StateChip');
    expect(Array.from(chips).map(chip => chip.textContent)).toEqual([
      'up',
      'failed',
      'running'
    ]);
    panel.node
      .querySelectorAll<HTMLElement>('.jp-HyperPod-item')
      .forEach(item => item.click());
    expect(opened).toEqual(['local', run(2).run_id, run(1).run_id]);
    panel.dispose();
  });

  it('teaches the first step where there are no runs', async () => {
    const panel = await shownPanel(new FakeRunClient());
    expect(panel.node.textContent).toContain('%%hyperpod');
    panel.dispose();
  });

  it('does not look at the clusters behind another panel', async () => {
    const panel = await shownPanel(new FakeRunClient());
    const stop = jest.spyOn(ClustersModel.prototype, 'stop');
    const start = jest.spyOn(ClustersModel.prototype, 'start');
    panel.hide();
    expect([stop.mock.calls.length, start.mock.calls.length]).toEqual([1, 0]);
    panel.show();
    expect(start).toHaveBeenCalledTimes(1);
    panel.dispose();
  });

  it('folds what AWS knows where there is no account, once', async () => {
    const clusterClient = new FakeClusterClient();
    const problem = { code: 'no_aws_credentials', message: 'none', hint: null };
    const panel = await shownPanel(
      new FakeRunClient(),
      [],
      cluster,
      problem,
      clusterClient
    );
    const section = (panel.content as AccordionPanel).widgets[1];
    await until(() => section.isHidden);
    const asked = clusterClient.asked.length;
    section.show();
    await until(() => clusterClient.asked.length > asked);
    await until(() => (section.node.textContent ?? '').includes('none'));
    expect(section.isHidden).toBe(false);
    panel.dispose();
  });

  it('says in words that the server is gone', async () => {
    const client = new FakeRunClient();
    client.failure = ApiError.local('network', 'TypeError: failed to fetch');
    const panel = await shownPanel(client);
    const alert = panel.node.querySelector('[role="alert"]');
    expect(alert?.textContent).toContain('does not respond');
    expect(alert?.textContent).toContain('Try again');
    panel.dispose();
  });
});
