import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import { until } from '../../__tests__/until';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { IPreferences, STANDARD } from '../../settings';
import { CommandIDs, IHyperPod } from '../../tokens';
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
  let client: FakeRunClient;
  let runs: RunsModel;
  let shown: { id: string; isVisible: boolean }[];

  /** Runs end while something is preferred; what is told of them. */
  async function tellOf(
    states: readonly string[],
    preferred: Partial<IPreferences> = {}
  ): Promise<string[]> {
    const commands = new CommandRegistry();
    commands.addCommand(CommandIDs.showPanel, { execute: () => null });
    const app = {
      commands,
      restored: Promise.resolve(),
      shell: { widgets: (area: string) => (area === 'main' ? shown : []) }
    };
    const hyperPod = {
      preferences: { value: { ...STANDARD, ...preferred } },
      runs,
      trans
    };
    void noticesPlugin.activate(
      app as unknown as JupyterFrontEnd,
      hyperPod as unknown as IHyperPod
    );
    client.runs = states.map((_, index) => run(index + 1));
    await runs.refresh();
    client.runs = states.map((state, index) => run(index + 1, { state }));
    await runs.refresh();
    await jest.advanceTimersByTimeAsync(5000);
    return told().map(one => one.message);
  }

  beforeEach(() => {
    jest.useFakeTimers();
    client = new FakeRunClient();
    runs = new RunsModel({ client });
    shown = [];
  });

  afterEach(() => {
    runs.dispose();
    jest.useRealTimers();
  });

  it('tell how runs ended', async () => {
    expect(await tellOf(['succeeded', 'failed', 'cancelled'])).toEqual([
      '3 runs finished, 1 failed, 1 cancelled.'
    ]);
  });

  it('are of failures only, or off, where that is wanted', async () => {
    const states = ['succeeded', 'failed'];
    expect(await tellOf(states, { notifications: 'failures' })).toEqual([
      'run 2 failed.'
    ]);
    Notification.dismiss();
    expect(await tellOf(states, { notifications: 'off' })).toEqual([]);
  });

  it('leave out the run whose page is in view', async () => {
    shown = [{ id: `hyperpod-run-${run(1).run_id}`, isVisible: true }];
    expect(await tellOf(['failed'])).toEqual([]);
  });

  it('leave out what the user cancels here', async () => {
    client.runs = [run(1)];
    await runs.act(run(1).run_id, 'cancel');
    expect(await tellOf(['cancelled'])).toEqual([]);
  });
});
