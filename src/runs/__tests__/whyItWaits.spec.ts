import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IWaitReason } from '../client';
import { IStartNow, WhyItWaits } from '../whyItWaits';
import { run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

describe('WhyItWaits', () => {
  let asked: number;
  let answer: () => Promise<IWaitReason>;
  let widget: Widget;
  let switched: string[];

  const load = (): Promise<IWaitReason> => {
    asked += 1;
    return answer();
  };

  function says(parts: Record<string, unknown>): void {
    answer = () =>
      Promise.resolve(answerOf('WaitReason', { run_id: 'x', ...parts }));
  }

  async function show(reason?: string): Promise<void> {
    const shown = run(1, { state: 'waiting', reason });
    const switchTo = (change: IStartNow) => {
      switched.push(change.text);
      return Promise.resolve();
    };
    const openRun = (runId: string) => void switched.push(`open ${runId}`);
    const props = { run: shown, trans, load, switchTo, openRun };
    widget = ReactWidget.create(React.createElement(WhyItWaits, props));
    Widget.attach(widget, document.body);
    await until(() => text().includes('Updated'));
  }

  function text(): string {
    return widget.node.textContent ?? '';
  }

  function button(label: string): HTMLElement | undefined {
    return [...widget.node.querySelectorAll('button')].find(
      one => one.textContent === label
    );
  }

  beforeEach(() => {
    asked = 0;
    switched = [];
    says({});
  });

  afterEach(() => {
    jest.restoreAllMocks();
    widget.dispose();
  });

  it('says the place and who is in the way', async () => {
    says({
      reason: 'others use them',
      position: 12,
      ahead: ['7 (alice)', '8 (bob)'],
      expected_start: '2026-01-01T10:00:00.000Z',
      holders: [
        { user: 'alice', accelerators: 24, nodes: 3, jobs: 1 },
        { user: 'bob', accelerators: 0, nodes: 1, jobs: 2 }
      ]
    });
    await show('another reason');
    expect(asked).toBe(1);
    expect(text()).toContain('Others use them');
    expect(text()).not.toContain('nother reason');
    expect(text()).toContain('12 (after 7 (alice), 8 (bob)) and 9 more');
    expect(text()).toContain('Expected start');
    expect(text()).toContain('alice: 24 accelerators, 3 nodes, 1 job');
    expect(text()).toContain('bob: 1 node, 2 jobs');
  });

  it('names the jobs that are in the way, and opens those that are runs', async () => {
    const holders = [{ user: 'alice', accelerators: 8, nodes: 1, jobs: 1 }];
    const blockers = [
      { job: '7', name: 'sweep', user: 'alice', run_id: null, nodes: 1 },
      { job: '8', name: 'mine', user: 'me', run_id: 'r-8', nodes: 2 }
    ];
    says({ holders, blockers });
    await show();
    expect(text()).toContain('sweepalice1');
    expect(text()).not.toContain('8 accelerators');
    button('mine')?.click();
    expect(switched).toEqual(['open r-8']);
  });

  it('has a button for each way in which it would start now', async () => {
    const ways = [
      { text: 'with 2 nodes instead of 4 (--nodes 2)', nodes: 2 },
      { text: 'in the queue dev (--queue dev)', queue: 'dev' }
    ];
    says({ would_start_now: ways, tried: 3 });
    await show();
    expect(text()).toContain('Could start now:Switch to 2 nodesMove to dev');
    expect(text()).not.toContain('--nodes');
    button('Switch to 2 nodes')?.click();
    button('Move to dev')?.click();
    expect(switched).toEqual(ways.map(way => way.text));
  });

  it('promises nothing from an answer that is older than 15 s', async () => {
    const way = { text: 'in the queue dev (--queue dev)', queue: 'dev' };
    says({ would_start_now: [way], tried: 1 });
    await show();
    const now = Date.now();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(now + 16_000);
    await until(() => text().includes('Could have started'));
    expect(text()).not.toContain('start now');
    // The button asks first, and what no longer holds is not done.
    says({ tried: 1 });
    button('Move to dev')?.click();
    await until(() => text().includes('The smaller size that was tried'));
    expect(switched).toEqual([]);
    says({ would_start_now: [way], tried: 1 });
    clock.mockRestore();
    button('Refresh')?.click();
    await until(() => button('Move to dev') !== undefined);
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 16_000);
    await until(() => text().includes('Could have started'));
    button('Move to dev')?.click();
    await until(() => switched.length === 1);
  });

  it('says when nothing else would start', async () => {
    says({ tried: 5 });
    await show();
    expect(text()).toContain('The reason is unknown.');
    expect(text()).toContain('None of the 5 alternatives');
    expect(text()).not.toContain('Queue position');
  });

  it('says nothing of what was not asked, as on this machine', async () => {
    says({ reason: 'it is held', position: 2 });
    await show();
    expect(text()).toContain('Held');
    expect(text()).toContain('Queue position2');
    expect(text()).not.toContain('start');
    expect(text()).not.toContain('In use by');
  });

  it('asks again when it is told to, and says what went wrong', async () => {
    await show();
    answer = () =>
      Promise.reject(ApiError.local('unreachable', 'nobody answers', 503));
    button('Refresh')?.click();
    await until(() => widget.node.querySelector('[role="alert"]') !== null);
    expect(text()).toContain('nobody answers');
  });
});
