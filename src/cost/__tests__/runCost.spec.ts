import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { hoursText, moneyText } from '../../components/words';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { IEstimate } from '../client';
import { estimateWords } from '../estimate';
import { CostModel } from '../costModel';
import { CostSection } from '../section';

const trans = nullTranslator.load('hyperpod_jlab');

const PRICE = {
  instance_type: 'ml.p5.48xlarge',
  price: 98.32,
  source: 'price_list'
};

function estimate(parts: object): IEstimate {
  return answerOf('Estimate', { currency: 'USD', ...parts });
}

describe('Words of cost', () => {
  it.each([
    [98.32, '$98.32'],
    [0.0001, '< $0.01'],
    [0, '$0.00'],
    [1234.5, '$1,234.50']
  ])('money %f: %s', (amount, text) => {
    expect(moneyText(amount, 'USD')).toBe(text);
  });

  it.each([
    [0, '0'],
    [0.001, '< 0.01'],
    [1.2345, '1.23'],
    [12345.6, '12,346']
  ])('hours %f: %s', (hours, text) => {
    expect(hoursText(hours)).toBe(text);
  });

  it('say money an hour and at most, by which price', () => {
    const words = estimateWords(
      estimate({
        ...{ per_hour: 98.32, at_most: 196.64, gpus: 8, gpu_hours: 16 },
        prices: [PRICE],
        notes: ['the nodes have several prices']
      }),
      trans
    );
    expect(words?.text).toBe('about $98/h, at most $197');
    expect(words?.hint).toBe(
      '$98.32 per ml.p5.48xlarge and hour, from the AWS Price List\nThe nodes have several prices'
    );
  });

  it('say the largest share of a quota, and all for a hint', () => {
    const words = estimateWords(
      estimate({
        ...{ per_hour: 98.32, at_most: 196.64 },
        shares: [
          answerOf('QuotaShare', {
            ...{ quota: 'queue team-a', unit: 'GPUs', share: 0.039 },
            ...{ nominal: 5000, used: 12.5 }
          }),
          answerOf('QuotaShare', {
            ...{ quota: 'account vision', unit: 'GPU-hours', share: 0.16 },
            ...{ nominal: 100, used: 40 }
          })
        ]
      }),
      trans
    );
    expect(words?.text).toBe(
      'about $98/h, at most $197 · 16% of the GPU-hours of account vision'
    );
    expect(words?.hint).toBe(
      'The GPU-hours of account vision: 40 of 100 used\nThe GPUs of queue team-a: 12.5 of 5,000 used'
    );
  });

  it('say hours without a price, and nothing without a limit either', () => {
    const text = (parts: object) => estimateWords(estimate(parts), trans)?.text;
    expect(text({ per_hour: 1.5, at_most: null })).toBe('about $1.50/h');
    expect(text({ gpus: 16, gpu_hours: 32, node_hours: 4 })).toBe(
      'at most 32 GPU-hours'
    );
    expect(text({ gpus: 0, node_hours: 4 })).toBe('at most 4 node-hours');
    expect(text({ gpus: 16 })).toBeUndefined();
  });
});

describe('The cost of a run', () => {
  let client: FakeRunClient;
  let model: CostModel;
  let widget: Widget | null;

  async function show(parts: object): Promise<string> {
    client.costs = answerOf('RunCost', { currency: 'USD', ...parts });
    widget = ReactWidget.create(
      React.createElement(UseSignal, {
        signal: model.changed,
        children: () =>
          React.createElement(CostSection, { model, openUsage: null, trans })
      })
    );
    Widget.attach(widget, document.body);
    model.follow(run(1, { state: 'running' }));
    await until(() => widget?.node.querySelector('dl') !== null);
    return widget.node.textContent ?? '';
  }

  function asked(): number {
    return client.calls.filter(call => call.startsWith('cost')).length;
  }

  beforeEach(() => {
    client = new FakeRunClient();
    model = new CostModel(client, run(1).run_id);
    widget = null;
  });

  afterEach(() => {
    widget?.dispose();
    model.dispose();
    jest.useRealTimers();
  });

  it('shows money, hours, what was wasted and how busy the GPUs were', async () => {
    const text = await show({
      ...{ amount: 300, wasted_amount: 100, node_hours: 3, gpu_hours: 24 },
      ...{ wasted_node_hours: 1, wasted_gpu_hours: 8, gpu_utilization: 62.4 },
      ...{ source: 'accounting', prices: [PRICE] }
    });
    expect(text).toContain('Cost$300.00Node-hours3GPU-hours24');
    expect(text).toContain('GPUs 62 % busy');
    expect(text).toContain(
      '$100.00 (8 GPU-hours) wasted by attempts that were repeated'
    );
    expect(text).toContain(
      '$98.32 per ml.p5.48xlarge and hour, from the AWS Price List.'
    );
    expect(text).toContain('from the scheduler’s accounting');
    const parts = [
      ...(widget?.node.querySelectorAll('.jp-HyperPod-Bar-part') ?? [])
    ];
    expect(parts.map(one => one.getAttribute('style'))).toEqual([
      'width: 41.6%;',
      'width: 25.1%;',
      'width: 33.3%;'
    ]);
  });

  it('shows hours and a note where no price is known, and no bar where all was of use', async () => {
    const text = await show({
      ...{ amount: null, wasted_amount: null, node_hours: 0.5, gpu_hours: 0 },
      ...{ source: 'records', notes: ['no price is known'] }
    });
    expect(text).toContain('Node-hours0.5No price is known.');
    expect(text).not.toContain('GPU-hours');
    expect(widget?.node.querySelector('.jp-HyperPod-Bar')).toBeNull();
  });

  it('is read every 30 s while the run goes on, however often it is shown, and at once in another state', async () => {
    jest.useFakeTimers({ doNotFake: ['performance', 'queueMicrotask'] });
    const running = run(1, { state: 'running' });
    model.follow(running);
    await jest.advanceTimersByTimeAsync(100);
    model.stop();
    model.follow(running);
    await jest.advanceTimersByTimeAsync(5000);
    expect(asked()).toBe(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(asked()).toBe(3);
    const ended_at = new Date(Date.now()).toISOString();
    const over = run(1, { state: 'failed', ended_at });
    model.follow(over);
    await jest.advanceTimersByTimeAsync(100);
    expect(asked()).toBe(4);
    // The accounting may be late; then nothing changes any more.
    await jest.advanceTimersByTimeAsync(200_000);
    const last = asked();
    expect(last).toBeGreaterThan(4);
    model.stop();
    model.follow(over);
    await jest.advanceTimersByTimeAsync(200_000);
    expect(asked()).toBe(last);
  });
});
