import { IDisposable } from '@lumino/disposable';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { FakeClusterClient, list, row } from './clusterFakes';
import { RegionChoice } from '../regions';
import { ClusterStore } from '../store';
import { ICluster, IClusterPage } from '../types';

/** A client that remembers how the configured clusters were asked for. */
class Client extends FakeClusterClient {
  readonly refreshed: boolean[] = [];

  override async configured(refresh = false): Promise<readonly ICluster[]> {
    this.refreshed.push(refresh);
    return super.configured();
  }

  /** The requests on AWS' clusters. */
  get ofAws(): readonly string[] {
    return this.lists
      .filter(query => !query.configured)
      .map(query => `${query.limit} ${query.region} ${query.refresh}`);
  }
}

describe('ClusterStore', () => {
  let client: Client;
  let regions: RegionChoice;
  let store: ClusterStore;
  let watchers: IDisposable[];

  beforeEach(() => {
    client = new Client();
    client.answer = list({ name: 'train', configured: true }, row('far'), {
      name: 'local',
      configured: true
    });
    regions = new RegionChoice({ get: () => new Promise(() => undefined) });
    make({ interval: 20, awsTimes: { poll: 20, soon: 5 } });
  });

  afterEach(() => {
    watchers.forEach(one => one.dispose());
    store.dispose();
  });

  function make(times: Partial<ClusterStore.IOptions>): void {
    watchers = [];
    store = new ClusterStore({ client, regions, ...times });
  }

  function watch(options?: { aws: boolean }): IDisposable {
    const watcher = store.watch(options);
    watchers.push(watcher);
    return watcher;
  }

  async function quiet(): Promise<void> {
    const asked = client.lists.length;
    await new Promise(resolve => setTimeout(resolve, 150));
    expect(client.lists).toHaveLength(asked);
  }

  it('asks for clusters only while somebody looks', async () => {
    await quiet();
    const one = watch();
    const other = watch();
    await until(() => client.refreshed.length > 1);
    one.dispose();
    one.dispose();
    const asked = client.refreshed.length;
    await until(() => client.refreshed.length > asked);
    other.dispose();
    await quiet();
    watch();
    const before = client.refreshed.length;
    await until(() => client.refreshed.length > before);
  });

  it('reads once for all who look', async () => {
    store.dispose();
    make({ interval: 100_000 });
    watch();
    watch();
    await until(() => store.clusters !== null);
    expect(client.refreshed).toEqual([false]);
  });

  it('reads once, and when it is wanted, where it is not to refresh', async () => {
    store.isLive = false;
    watch();
    await until(() => store.clusters !== null);
    await quiet();
    await store.refresh();
    expect(client.refreshed).toEqual([false, true]);
    store.isLive = true;
    await until(() => client.refreshed.length > 3);
  });

  it('has AWS asked only while somebody sees what it knows', async () => {
    watch();
    await until(() => client.refreshed.length > 2);
    expect(client.ofAws).toEqual([]);
    expect(store.clusters?.map(one => one.name)).toEqual(['train', 'local']);
    const watcher = watch({ aws: true });
    await until(() => store.clusters?.length === 3);
    // The configured ones are first, whatever the order of the answer.
    expect(store.clusters?.map(one => one.name)).toEqual([
      'train',
      'local',
      'far'
    ]);
    watcher.dispose();
    const asked = client.ofAws.length;
    const before = client.refreshed.length;
    await until(() => client.refreshed.length > before + 2);
    expect(client.ofAws).toHaveLength(asked);
  });

  it('joins a configured cluster with what AWS knows of it', async () => {
    client.answer = list({ ...row('train'), configured: true });
    watch({ aws: true });
    await until(() => Boolean(store.find('train')?.hyperpod));
    expect(store.clusters).toHaveLength(1);
    expect(store.find('nothing')).toBeNull();
  });

  it('asks past all caches when it is refreshed, AWS only if it is seen', async () => {
    store.dispose();
    const poll = 100_000;
    make({ interval: poll, awsTimes: { poll, soon: 5 } });
    const configured = watch();
    await until(() => store.clusters !== null);
    await store.refresh();
    expect(client.refreshed).toEqual([false, true]);
    expect(client.ofAws).toEqual([]);
    configured.dispose();
    watch({ aws: true });
    await until(() => store.aws !== null);
    await store.refresh();
    await until(() => client.ofAws.length === 2);
    expect(client.ofAws).toEqual(['100 null false', '100 null true']);
    expect(client.refreshed.filter(Boolean)).toHaveLength(2);
  });

  it('renews from what the server knows, and only what is seen', async () => {
    store.dispose();
    make({ interval: 100_000 });
    await store.renew();
    expect(client.refreshed).toEqual([]);
    watch();
    await until(() => store.clusters !== null);
    await store.renew();
    expect(client.refreshed).toEqual([false, false]);
  });

  it('lists more of AWS, and begins anew in another region', async () => {
    store.dispose();
    make({ awsTimes: { poll: 100_000, soon: 5 } });
    watch({ aws: true });
    await until(() => client.ofAws.length === 1);
    store.more();
    await until(() => client.ofAws.length === 2);
    await regions.choose('eu-west-1');
    await until(() => client.ofAws.length === 3);
    expect(client.ofAws).toEqual([
      '100 null false',
      '200 null false',
      '100 eu-west-1 false'
    ]);
  });

  it('reads AWS again soon while more is on its way', async () => {
    store.dispose();
    make({ awsTimes: { poll: 100_000, soon: 5 } });
    client.answer = { ...list(row('far')), loading: true };
    watch({ aws: true });
    await until(() => client.ofAws.length > 2);
    client.answer = list(row('far'));
    await until(() => store.aws?.loading === false);
    expect(client.ofAws.every(asked => asked.endsWith('false'))).toBe(true);
  });

  it('forgets an answer of the region before', async () => {
    let answer: (value: IClusterPage) => void = () => undefined;
    const spy = jest.spyOn(client, 'list');
    watch();
    await until(() => store.clusters !== null);
    spy.mockImplementation(query =>
      query.configured || query.region
        ? FakeClusterClient.prototype.list.call(client, query)
        : new Promise(resolve => (answer = resolve))
    );
    watch({ aws: true });
    await until(() => spy.mock.calls.some(([query]) => !query.configured));
    client.answer = list({ name: 'train', configured: true }, row('new'));
    await regions.choose('eu-west-1');
    await until(() => store.find('new') !== null);
    answer(answerOf('ClusterPage', list(row('late'))));
    const before = client.refreshed.length;
    await until(() => client.refreshed.length > before + 1);
    expect(store.find('late')).toBeNull();
  });

  it('keeps the rows when they can’t be read, and says why', async () => {
    watch({ aws: true });
    await until(() => store.clusters?.length === 3);
    client.failure = ApiError.local('network', 'gone');
    await until(() => store.error !== null && store.awsError !== null);
    expect(store.clusters).toHaveLength(3);
    client.failure = null;
    await until(() => store.error === null);
  });
});
