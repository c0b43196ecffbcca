import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IWaitReason } from '../client';
import { WhyItWaits } from '../whyItWaits';
import { run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

describe('WhyItWaits', () => {
  let asked: number;
  let answer: () => Promise<IWaitReason>;
  let widget: Widget;

  const load = (): Promise<IWaitReason> => {
    asked += 1;
    return answer();
  };

  function says(parts: Record<string, unknown>): void {
    answer = () =>
      Promise.resolve(answerOf('WaitReason', { run_id: 'x', ...parts }));
  }

  async function show(state: string, reason?: string): Promise<void> {
    const shown = run(1, { state, reason });
    const props = { run: shown, trans, load };
    widget = ReactWidget.create(
      React.createElement(
        'div',
        null,
        React.createElement('h1', null, shown.name),
        React.createElement(WhyItWaits, props)
      )
    );
    Widget.attach(widget, document.body);
    await until(() => widget.node.querySelector('h1') !== null);
  }

  function part(): HTMLDetailsElement | null {
    return widget.node.querySelector('details');
  }

  async function open(): Promise<string> {
    const details = part();
    if (!details) {
      throw new Error('nothing to open');
    }
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    await until(() => details.querySelector('dl, [role="alert"]') !== null);
    return details.textContent ?? '';
  }

  beforeEach(() => {
    asked = 0;
    says({});
  });

  afterEach(() => {
    widget.dispose();
  });

  it('is not there when the run does not wait', async () => {
    await show('running');
    expect(part()).toBeNull();
  });

  it('asks only once it is opened', async () => {
    await show('waiting');
    expect(asked).toBe(0);
    await open();
    expect(asked).toBe(1);
  });

  it('says the place, who is in the way and what would start', async () => {
    says({
      reason: 'others use them',
      position: 12,
      ahead: ['7 (alice)', '8 (bob)'],
      expected_start: '2026-01-01T10:00:00.000Z',
      holders: [
        { user: 'alice', accelerators: 24, nodes: 3, jobs: 1 },
        { user: 'bob', accelerators: 0, nodes: 1, jobs: 2 }
      ],
      would_start_now: ['with 2 nodes instead of 4 (--nodes 2)'],
      tried: 3
    });
    await show('waiting');
    const text = await open();
    expect(text).toContain('others use them');
    expect(text).toContain('12 (after 7 (alice), 8 (bob)) and 9 more');
    expect(text).toContain('Expected start');
    expect(text).toContain('alice: 24 accelerators, 3 nodes, 1 job');
    expect(text).toContain('bob: 1 node, 2 jobs');
    expect(text).toContain('with 2 nodes instead of 4 (--nodes 2)');
  });

  it('does not say twice what the page says', async () => {
    says({ reason: 'others use them' });
    await show('waiting', 'others use them');
    const text = await open();
    expect(text).not.toContain('others use them');
    expect(text).toContain('No further information is available.');
  });

  it('says when nothing else would start', async () => {
    says({ tried: 5 });
    await show('waiting');
    const text = await open();
    expect(text).toContain('The reason is unknown.');
    expect(text).toContain('none (5 alternatives tried)');
    expect(text).not.toContain('Queue position');
  });

  it('says nothing of what was not asked, as on this machine', async () => {
    says({ reason: 'held', position: 2 });
    await show('waiting');
    const text = await open();
    expect(text).toContain('Queue position2');
    expect(text).not.toContain('Would start now');
    expect(text).not.toContain('In use by');
  });

  it('asks again when it is told to, and says what went wrong', async () => {
    await show('waiting');
    await open();
    answer = () =>
      Promise.reject(ApiError.local('unreachable', 'nobody answers', 503));
    part()?.querySelector<HTMLElement>('button')?.click();
    await until(() => part()?.querySelector('[role="alert"]') !== null);
    expect(part()?.textContent).toContain('nobody answers');
  });
});
