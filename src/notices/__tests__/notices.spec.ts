import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';

import { until } from '../../__tests__/until';
import { run } from '../../runs/__tests__/fakes';
import type { IRunChange } from '../../runs/model';
import { IPreferences, STANDARD } from '../../settings';
import { EndedRuns } from '../bundle';
import { noticesPlugin } from '../plugin';

const trans = nullTranslator.load('hyperpod_jlab');

function told(): readonly Notification.INotification[] {
  return Notification.manager.notifications;
}

afterEach(() => Notification.dismiss());

describe('EndedRuns', () => {
  const opened: string[] = [];
  let ended: EndedRuns;

  beforeEach(() => {
    opened.length = 0;
    ended = new EndedRuns({
      openRun: runId => opened.push(runId),
      openRuns: () => opened.push('all'),
      trans,
      gather: 10
    });
  });

  afterEach(() => ended.dispose());

  function press(): void {
    told()[0].options.actions?.[0].callback(new MouseEvent('click'));
  }

  it('tells of one run, and opens it', async () => {
    ended.add(run(1, { state: 'failed', reason: 'out of memory' }));
    await until(() => told().length > 0);
    expect(told()[0]).toMatchObject({
      message: 'run 1 failed: out of memory',
      type: 'error'
    });
    press();
    expect(opened).toEqual([run(1).run_id]);
  });

  it('tells of runs that end together at once, and goes on counting', async () => {
    for (let number = 1; number <= 11; number++) {
      ended.add(run(number, { state: 'succeeded' }));
    }
    await until(() => told().length > 0);
    expect(told()[0]).toMatchObject({
      message: '11 runs finished.',
      type: 'success'
    });
    ended.add(run(12, { state: 'failed' }));
    await until(() => told()[0].type === 'error');
    expect(told()).toHaveLength(1);
    expect(told()[0].message).toBe('12 runs finished, 1 failed.');
    press();
    expect(opened).toEqual(['all']);
  });
});

describe('notifications', () => {
  let cancelled: string[];
  let shown: { id: string; isVisible: boolean }[];

  /** Runs end while something is preferred; what is told of them. */
  function tellOf(
    states: readonly string[],
    preferred: Partial<IPreferences> = {}
  ): string[] {
    const stateChanged = new Signal<object, IRunChange>({});
    const app = {
      commands: new CommandRegistry(),
      restored: new Promise(() => undefined),
      shell: { widgets: (area: string) => (area === 'main' ? shown : []) }
    };
    const hyperPod = {
      preferences: { value: { ...STANDARD, ...preferred } },
      runs: {
        stateChanged,
        isCancelledHere: (runId: string) => cancelled.includes(runId)
      },
      trans
    };
    void noticesPlugin.activate(app as unknown as JupyterFrontEnd, hyperPod);
    states.forEach((state, index) =>
      stateChanged.emit({ run: run(index + 1, { state }), before: 'running' })
    );
    jest.advanceTimersByTime(5000);
    return told().map(one => one.message);
  }

  beforeEach(() => {
    jest.useFakeTimers();
    cancelled = [];
    shown = [];
  });

  afterEach(() => jest.useRealTimers());

  it('tell how runs ended', () => {
    expect(tellOf(['succeeded', 'failed', 'cancelled', 'running'])).toEqual([
      '3 runs finished, 1 failed, 1 cancelled.'
    ]);
  });

  it('are of failures only, or off, where that is wanted', () => {
    const states = ['succeeded', 'failed'];
    expect(tellOf(states, { notifications: 'off' })).toEqual([]);
    expect(tellOf(states, { notifications: 'failures' })).toEqual([
      'run 2 failed.'
    ]);
  });

  it('leave out the run whose page is in view', () => {
    shown = [{ id: `hyperpod-run-${run(1).run_id}`, isVisible: true }];
    expect(tellOf(['failed'])).toEqual([]);
  });

  it('leave out what the user cancels here', () => {
    cancelled = [run(1).run_id];
    expect(tellOf(['cancelled'])).toEqual([]);
  });
});
