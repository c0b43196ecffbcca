import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { ClustersModel } from '../../clusters/model';
import { IClusterPage } from '../../clusters/types';
import { RegionChoice } from '../../clusters/regions';
import { HyperpodSection } from '../awsSection';
import {
  FakeClusterClient,
  list,
  row
} from '../../clusters/__tests__/clusterFakes';

const trans = nullTranslator.load('hyperpod_jlab');

describe('HyperpodSection', () => {
  let client: FakeClusterClient;
  let opened: string[];
  let regions: RegionChoice;
  let model: ClustersModel;
  let section: HyperpodSection;

  beforeEach(() => {
    client = new FakeClusterClient();
    opened = [];
    const openHyperpodCluster = (name: string) => opened.push(name);
    regions = new RegionChoice({
      get: <T>() =>
        Promise.resolve({
          default: 'us-west-2',
          regions: ['eu-west-1', 'us-west-2']
        } as T)
    });
    model = new ClustersModel(client, regions);
    section = new HyperpodSection(
      model,
      regions,
      { openHyperpodCluster, openDoctor: () => opened.push('doctor') },
      trans
    );
  });

  afterEach(() => {
    section.dispose();
    model.dispose();
  });

  it('says what is missing to submit, but not of configured ones', async () => {
    client.answer = list(
      row('a', reach('no-right', 'AWS does not let you')),
      row('b', reach('configured', 'is configured')),
      row('c', reach('not-looked', 'nobody has looked'))
    );
    await show();
    expect(text()).toContain('missing permission: AWS does not let you');
    expect(text()).not.toContain('is configured');
    expect(text()).toContain('connection not checked');
  });

  function reach(word: string, sentence: string): Record<string, unknown> {
    return { reach: { word, sentence, next_step: null, config: null } };
  }

  function text(): string {
    return section.node.textContent ?? '';
  }

  /** The panel reads the clusters while it is seen, whatever it shows of them. */
  function attach(): void {
    Widget.attach(section, document.body);
    model.start();
  }

  async function show(): Promise<void> {
    attach();
    await until(() => text() !== '' && !text().includes('Loading'));
  }

  function refresh(): void {
    // The accordion shows the toolbar; here nobody does.
    for (const item of section.toolbar.children()) {
      item.node.click();
    }
  }

  it('lists clusters with their states in words, and opens them', async () => {
    client.answer = list(
      row('one', { configured_as: ['train'] }),
      row('two', { state: 'failed', nodes: 1, target: 4, reason: 'it fell' })
    );
    await show();
    const chips = section.node.querySelectorAll('.jp-HyperPod-StateChip');
    expect(Array.from(chips).map(chip => chip.textContent)).toEqual([
      'in service',
      'failed'
    ]);
    expect(text()).toContain('Slurm · 5 nodes · configured as train');
    expect(text()).toContain('1 of 4 nodes');
    expect(text()).toContain('it fell');
    expect(text()).toContain('Updated ');
    section.node
      .querySelectorAll<HTMLElement>('.jp-HyperPod-item')
      .forEach(item => item.click());
    expect(opened).toEqual(['one', 'two']);
  });

  it('asks nothing before it is shown, and when the user wants it AWS now', async () => {
    expect(client.asked).toEqual([]);
    await show();
    expect(client.asked).toEqual([['100', false]]);
    refresh();
    await until(() => client.asked.length === 2);
    expect(client.asked[1]).toEqual(['100', true]);
  });

  it('shows the list at once, and the rest when it comes', async () => {
    const bare = { described_at: null, orchestrator: null, nodes: null };
    client.answer = { ...list(row('one', bare)), loading: true };
    attach();
    await until(() => text().includes('one'));
    expect(text()).toContain('Loading…');
    client.answer = list(row('one'));
    await until(() => text().includes('5 nodes'));
    expect(client.asked.every(([, forced]) => !forced)).toBe(true);
  });

  it('says in one plain line that there is no AWS', async () => {
    const problem = {
      code: 'no_aws_credentials',
      message: 'there are no AWS credentials',
      hint: 'aws configure',
      detail: {}
    };
    client.answer = { ...list(), as_of: null, problem };
    await show();
    expect(text()).toBe('there are no AWS credentials: aws configure');
    expect(section.node.querySelector('[role="alert"]')).toBeNull();
  });

  it('says in one plain line which right is missing, and offers the doctor', async () => {
    const problem = {
      code: 'missing_right',
      message: 'AWS does not let you sagemaker:ListClusters',
      hint: 'the AWS admin can grant it',
      detail: {}
    };
    client.answer = { ...list(), as_of: null, problem };
    await show();
    expect(text()).toContain(
      'AWS does not let you sagemaker:ListClusters: the AWS admin can grant it'
    );
    expect(text()).not.toContain('no HyperPod clusters');
    expect(section.node.querySelector('[role="alert"]')).toBeNull();
    const doctor = Array.from(section.node.querySelectorAll('button')).pop();
    doctor?.click();
    expect(opened).toEqual(['doctor']);
  });

  it('lists what is configured too, and opens it by that name', async () => {
    const train = {
      ...row('one', { configured_as: ['train'] }),
      name: 'train'
    };
    const local = { name: 'local', configured: true };
    client.answer = list({ ...train, configured: true }, local);
    await show();
    const items =
      section.node.querySelectorAll<HTMLElement>('.jp-HyperPod-item');
    expect(items).toHaveLength(1);
    expect(items[0].textContent).toContain('one');
    items[0].click();
    expect(opened).toEqual(['train']);
  });

  it('has AWS not asked while it is folded', async () => {
    await show();
    section.hide();
    model.reread();
    await until(() => client.lists.length === 2);
    section.show();
    await until(() => client.lists.length === 3);
    const asks = client.lists.map(query => query.configured ?? false);
    expect(asks).toEqual([false, true, false]);
  });

  it('keeps the rows with their age when AWS can’t be asked', async () => {
    client.answer = list(row('one'));
    await show();
    const problem = { code: 'x', message: 'too many calls', hint: null };
    client.answer = { ...list(row('one')), problem };
    refresh();
    await until(() => text().includes('too many calls'));
    expect(text()).toContain('Newer data is not available');
    expect(text()).toContain('one');
    client.failure = ApiError.local('network', 'gone');
    refresh();
    await until(() => text().includes('does not respond'));
    expect(text()).toContain('one');
  });

  it('says that an account has none', async () => {
    await show();
    expect(text()).toContain('Your account has no HyperPod clusters');
  });

  it('shows more of many', async () => {
    client.answer = { ...list(row('one')), total: 151 };
    await show();
    const more = Array.from(section.node.querySelectorAll('button')).find(
      button => button.textContent === '150 more clusters'
    );
    more?.click();
    await until(() => client.asked.length === 2);
    expect(client.asked[1]).toEqual(['200', false]);
  });

  it('lists another region, and opens its clusters by their ARNs', async () => {
    client.answer = list(row('one'));
    await show();
    const select = () => section.node.querySelector('select');
    await until(() => select()?.options.length === 3);
    expect(select()?.options[0].textContent).toBe('us-west-2 (default)');
    client.answer = list(row('far', { arn: 'arn:far' }));
    await regions.choose('eu-west-1');
    await until(() => text().includes('far'));
    expect(text()).not.toContain('one');
    expect(client.lists.map(query => query.region)).toEqual([
      null,
      'eu-west-1'
    ]);
    expect(select()?.value).toBe('eu-west-1');
    section.node.querySelector<HTMLElement>('.jp-HyperPod-item')?.click();
    expect(opened).toEqual(['arn:far']);
  });

  it('forgets an answer of the region before', async () => {
    let answer: (value: IClusterPage) => void = () => undefined;
    jest
      .spyOn(client, 'list')
      .mockImplementationOnce(() => new Promise(resolve => (answer = resolve)));
    attach();
    client.answer = list(row('far'));
    await until(() => jest.mocked(client.list).mock.calls.length === 1);
    await regions.choose('eu-west-1');
    await until(() => text().includes('far'));
    answer(answerOf('ClusterPage', list(row('late'))));
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(text()).not.toContain('late');
  });
});
