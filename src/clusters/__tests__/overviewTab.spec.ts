import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { clusters } from '../../submit/__tests__/fakes';
import { OverviewTab } from '../overviewTab';
import { ClusterView } from '../view';
import { storeOf } from './clusterFakes';

const trans = nullTranslator.load('hyperpod_jlab');

/** The text of the queues of an overview. */
async function queuesText(queue: object): Promise<string> {
  const overview = answerOf('ClusterOverview', { queues: [queue] });
  const client = { ...clusters, overview: () => Promise.resolve(overview) };
  const widget = ReactWidget.create(
    React.createElement(OverviewTab, {
      cluster: 'ml',
      client,
      view: new ClusterView(client, 'ml', storeOf(client)),
      openRun: () => undefined,
      openNode: () => undefined,
      trans
    })
  );
  Widget.attach(widget, document.body);
  const found = () => widget.node.querySelector('.jp-HyperPod-QueueBars');
  await until(() => found() !== null);
  const text = found()?.textContent ?? '';
  widget.dispose();
  return text;
}

it.each([
  [{ accelerators: 8, accelerators_free: 3, nodes: 1 }, '3 of 8 GPUs free'],
  [{ nodes: 4, nodes_free: 2, slots: 9 }, '2 of 4 nodes free'],
  [{ nodes: 1, slots: 2, slots_free: 1 }, '1 of 2 slots free'],
  [{ usable: false, state: 'up' }, 'you may not use it']
])('a queue with %j says “%s”', async (queue, text) => {
  const names = { name: 'q', state: 'up', nodes_free: null, slots_free: null };
  expect(await queuesText({ ...names, ...queue })).toBe(`q${text}`);
});
