import { until } from '../../__tests__/until';
import { FakeClusterClient, list } from './clusterFakes';
import { RegionChoice } from '../regions';
import { ClustersModel } from '../model';

describe('ClustersModel', () => {
  let client: FakeClusterClient;
  let model: ClustersModel;

  beforeEach(() => {
    client = new FakeClusterClient();
    const regions = new RegionChoice({
      get: () => new Promise(() => undefined)
    });
    model = new ClustersModel(client, regions, { poll: 20, soon: 5 });
  });

  afterEach(() => model.dispose());

  it('asks for clusters only while somebody looks', async () => {
    model.start();
    await until(() => client.lists.length > 1);
    model.stop();
    const calls = client.lists.length;
    await new Promise(resolve => setTimeout(resolve, 150));
    expect(client.lists).toHaveLength(calls);
    model.start();
    await until(() => client.lists.length > calls);
  });

  it('has AWS asked only while somebody sees what it knows', async () => {
    const aws = { name: 'far', configured: false };
    client.answer = list({ name: 'local', configured: true }, aws);
    model.start();
    await until(() => client.lists.length > 2);
    expect(client.lists.every(query => query.configured)).toBe(true);
    model.showAws(true);
    await until(() => model.value?.clusters.length === 2);
    expect(model.configured?.map(one => one.name)).toEqual(['local']);
    model.showAws(false);
    await until(() => model.value?.clusters.length === 1);
  });
});
