import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { UsedByRun } from '../usedByRun';
import { FakeRunClient, run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

const AMOUNTS = {
  source: 'accounting',
  attempts: 1,
  elapsed: 3600,
  nodes: 2,
  cpu_seconds: 7200,
  accelerator_seconds: 57_600,
  accelerator_kind: 'gpu',
  max_memory: 1.5 * 2 ** 30,
  exit_code: 139,
  signal: 11
};

describe('UsedByRun', () => {
  let client: FakeRunClient;
  let widget: Widget;

  async function show(state: string, used: object | null): Promise<string> {
    client.used = used && answerOf('Usage', used);
    const shown = run(1, { state, orchestrator: 'slurm' });
    const load = () => client.usage(shown.run_id);
    widget = ReactWidget.create(
      React.createElement(
        'div',
        null,
        React.createElement('h1', null, shown.name),
        React.createElement(UsedByRun, { run: shown, trans, load })
      )
    );
    Widget.attach(widget, document.body);
    await until(() => widget.node.querySelector('h1') !== null);
    if (used) {
      await until(() => part() !== null);
    }
    return part()?.textContent ?? '';
  }

  function part(): Element | null {
    return widget.node.querySelector('.jp-HyperPod-Usage');
  }

  beforeEach(() => {
    client = new FakeRunClient();
  });

  afterEach(() => {
    widget.dispose();
  });

  it('is not asked for while the run continues', async () => {
    expect(await show('running', null)).toBe('');
    expect(client.calls.filter(call => call.startsWith('usage'))).toEqual([]);
  });

  it('says hours, memory and signal, and that the accounting says so', async () => {
    const text = await show('failed', AMOUNTS);
    expect(text).toContain('GPU-hours16');
    expect(text).toContain('CPU-hours2');
    expect(text).toContain('Peak memory1.5 GiB');
    expect(text).toContain('Signal11');
    expect(text).toContain('from the scheduler’s accounting');
    expect(client.calls.filter(call => call.startsWith('usage'))).toHaveLength(
      1
    );
  });

  it('says when only launcher measurements tell, and leaves out what is unknown', async () => {
    const text = await show('succeeded', {
      ...AMOUNTS,
      source: 'journal',
      accelerator_seconds: null,
      max_memory: 200 * 2 ** 20,
      signal: null
    });
    expect(text).toContain('measured by the launcher; Slurm accounting is off');
    expect(text).toContain('Peak memory200 MiB');
    expect(text).not.toContain('GPU-hours');
    expect(text).not.toContain('Signal');
  });

  it('names other accelerators', async () => {
    const text = await show('succeeded', {
      ...AMOUNTS,
      accelerator_kind: 'neuron'
    });
    expect(text).toContain('Accelerator-hours16');
  });
});
