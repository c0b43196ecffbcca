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
    const find = () => bar.node.querySelector('select');
    await until(() => find() !== null);
    const select = find();
    const options = [...(select?.options ?? [])].slice(-2);
    expect(options.map(one => one.text)).toEqual(['big (/)', 'big (work)']);
    options[1].selected = true;
    select?.dispatchEvent(new Event('change', { bubbles: true }));
    expect(model.texts['resources.nodes']).toBe('5');
    bar.dispose();
    model.dispose();
  });
});
