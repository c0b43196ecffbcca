import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import {
  abilities,
  FakeNodeClient,
  problem
} from '../../nodes/__tests__/fakes';
import { IClusterClient } from '../client';
import { NodesTable } from '../nodesTable';

const trans = nullTranslator.load('hyperpod_jlab');

describe('Nodes of a configured cluster', () => {
  let nodeClient: FakeNodeClient;
  let reads: number;
  let table: Widget;

  beforeEach(() => {
    nodeClient = new FakeNodeClient();
    reads = 0;
  });

  afterEach(() => table.dispose());

  async function show(): Promise<void> {
    const client = {
      table: () => {
        reads += 1;
        const node = { name: 'n1', state: 'drained' };
        const rows = [answerOf('ClusterNode', node)];
        return Promise.resolve({ rows, next: null, total: 1 });
      }
    } as unknown as IClusterClient;
    const props = { cluster: 'train', client, nodeClient, trans };
    table = ReactWidget.create(React.createElement(NodesTable, props));
    Widget.attach(table, document.body);
    await until(() => table.node.textContent?.includes('n1') ?? false);
  }

  function box(): HTMLInputElement | null {
    return table.node.querySelector('tbody input');
  }

  function button(name: string): HTMLElement | undefined {
    return Array.from(table.node.querySelectorAll('button')).find(
      one => one.textContent === name
    );
  }

  it('are resumed by their scheduler', async () => {
    await show();
    await until(() => box() !== null);
    box()?.click();
    const before = reads;
    button('Resume')?.click();
    await until(() => nodeClient.orders.length === 1);
    const [whose, order] = nodeClient.orders[0];
    expect(whose).toEqual({ kind: 'clusters', cluster: 'train' });
    expect(order).toEqual({ action: 'resume', nodes: ['n1'] });
    await until(() => reads > before);
  });

  it('stay as they are where neither AWS nor a scheduler does anything to them', async () => {
    const none = problem('unsupported', 'local clusters cannot');
    const aws = problem('no_hyperpod_cluster', 'it is no HyperPod cluster');
    nodeClient.abilityAnswer = abilities({
      reboot: aws,
      replace: aws,
      drain: none,
      resume: none
    });
    await show();
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(box()).toBeNull();
    expect(button('Reboot…')).toBeUndefined();
    expect(table.node.textContent).not.toContain('no HyperPod cluster');
  });
});
