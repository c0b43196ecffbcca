import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { until } from '../../__tests__/until';
import { PresetBar } from '../presetBar';
import { FakeMemory, FakeServer, formOn, trans } from './fakes';

describe('presets of the same name', () => {
  it('are told apart by their folders', async () => {
    const memory = new FakeMemory();
    memory.kept = ['', 'work'].map((project, at) => ({
      name: 'big',
      project,
      cluster: 'local',
      spec: { resources: { nodes: at + 4 } }
    }));
    const model = await formOn(new FakeServer(), { memory });
    const bar = ReactWidget.create(<PresetBar model={model} trans={trans} />);
    Widget.attach(bar, document.body);
    const find = () => [...bar.node.querySelectorAll('button')];
    await until(() => find().length > 0);
    const named = find().filter(one => one.textContent?.startsWith('big'));
    expect(named.map(one => one.textContent)).toEqual([
      'big (/)',
      'big (work)'
    ]);
    named[1].click();
    expect(model.texts['resources.nodes']).toBe('5');
    await until(() => named[1].getAttribute('aria-pressed') === 'true');
    bar.dispose();
    model.dispose();
  });
});
