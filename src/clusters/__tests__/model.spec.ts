import { until } from '../../__tests__/until';
import { ClustersModel } from '../model';

it('clusters are asked for only while somebody looks', async () => {
  const list = jest.fn(() => Promise.resolve([]));
  const others = {
    table: jest.fn(),
    act: jest.fn(),
    queues: jest.fn(),
    adopt: jest.fn()
  };
  const model = new ClustersModel({ list, ...others }, 20);
  model.start();
  await until(() => list.mock.calls.length > 1);
  model.stop();
  const calls = list.mock.calls.length;
  await new Promise(resolve => setTimeout(resolve, 150));
  expect(list).toHaveBeenCalledTimes(calls);
  model.start();
  await until(() => list.mock.calls.length > calls);
  model.dispose();
});
