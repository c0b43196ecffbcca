import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { FakeClient } from '../../logs/__tests__/fakeClient';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { IRun } from '../../runs/types';
import { RunCard } from '../runCard';

const trans = nullTranslator.load('hyperpod_jlab');

const RUN = run(1, { name: 'train' });

/** An observer that is told by the test what is seen. */
class FakeObserver {
  constructor(callback: (entries: { isIntersecting: boolean }[]) => void) {
    FakeObserver.show = isIntersecting => callback([{ isIntersecting }]);
  }

  static show: (isIntersecting: boolean) => void = () => undefined;
  observe = jest.fn();
  disconnect = jest.fn();
}

class FakeResize {
  observe = jest.fn();
  disconnect = jest.fn();
}

beforeAll(() => {
  const fakes = { IntersectionObserver: FakeObserver };
  Object.assign(globalThis, fakes, { ResizeObserver: FakeResize });
});

function settled(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, 50));
}

function card(known: readonly IRun[] = [RUN]) {
  const runClient = new FakeRunClient();
  runClient.runs = [...known];
  const logClient = new FakeClient(10);
  const runs = new RunsModel({ client: runClient });
  const actions = {
    open: jest.fn(),
    cancel: jest.fn(),
    copyCommand: jest.fn(),
    openExecuted: jest.fn(),
    openPlace: jest.fn(),
    freeze: jest.fn(() => Promise.resolve())
  };
  const options = {
    runId: RUN.run_id,
    name: 'train',
    runs,
    logClient,
    actions
  };
  const widget = new RunCard({ ...options, trans });
  Widget.attach(widget, document.body);
  const dispose = () => {
    widget.dispose();
    runs.dispose();
  };
  return { actions, dispose, logClient, runClient, runs, widget };
}

function button(widget: Widget, text: string): HTMLElement | undefined {
  return [...widget.node.querySelectorAll('button')].find(
    item => item.textContent === text
  );
}

describe('a run’s card', () => {
  it('asks for nothing before it is seen', async () => {
    const { dispose, logClient, runClient, widget } = card();
    await settled();
    expect(runClient.calls).toEqual([]);
    expect(logClient.pages).toEqual([]);
    FakeObserver.show(true);
    await until(() => widget.node.textContent?.includes('train') ?? false);
    await until(() => logClient.follows.length === 1);
    dispose();
    expect(logClient.handler).toBeNull();
  });

  it('unsubscribes a moment after it went out of sight', async () => {
    const { dispose, logClient } = card();
    FakeObserver.show(true);
    await until(() => logClient.follows.length === 1);
    FakeObserver.show(false);
    FakeObserver.show(true);
    await settled();
    expect(logClient.follows).toHaveLength(1);
    FakeObserver.show(false);
    await until(() => logClient.handler === null);
    FakeObserver.show(true);
    await until(() => logClient.handler !== null);
    dispose();
  });

  it('says that the server does not know the run', async () => {
    const { dispose, logClient, widget } = card([]);
    FakeObserver.show(true);
    await until(() => !!widget.node.textContent?.includes('not found'));
    expect(widget.log).toBeNull();
    expect(logClient.pages).toEqual([]);
    dispose();
  });

  it('asks how the run is when its log has ended', async () => {
    const { dispose, logClient, runClient, widget } = card();
    FakeObserver.show(true);
    await until(() => logClient.handler !== null && !!button(widget, 'Cancel'));
    runClient.runs = [run(1, { name: 'train', state: 'succeeded' })];
    logClient.handler?.end();
    await until(() => !!widget.node.textContent?.includes('succeeded'));
    expect(button(widget, 'Cancel')).toBeUndefined();
    dispose();
  });

  it('cancels no run of another user', async () => {
    const { dispose, widget } = card([run(1, { name: 'train', own: false })]);
    FakeObserver.show(true);
    await until(() => !!widget.node.textContent?.includes('train'));
    expect(button(widget, 'Cancel')).toBeUndefined();
    dispose();
  });

  it('goes on in the same log when the run is requeued', async () => {
    const { dispose, logClient, runClient, runs, widget } = card();
    FakeObserver.show(true);
    await until(() => logClient.handler !== null);
    const become = async (state: string, attempts: number): Promise<void> => {
      const all = Array.from({ length: attempts }, (_, at) => ({
        number: at + 1,
        state
      }));
      runClient.runs = [run(1, { name: 'train', state, attempts: all })];
      await runs.get(RUN.run_id);
    };
    await become('failed', 1);
    logClient.handler?.end();
    await become('waiting', 1);
    expect(logClient.follows.map(({ cursor }) => cursor)).toEqual(['10', '10']);
    await become('running', 2);
    logClient.grow(5);
    await until(() => widget.log?.model.feed.window.length === 15);
    expect(widget.log?.model.feed.over).toBe(false);
    expect(widget.node.textContent).toContain('running');
    expect(logClient.follows).toHaveLength(2);
    dispose();
  });

  it('has buttons', async () => {
    const { actions, dispose, widget } = card();
    FakeObserver.show(true);
    await until(() => !!button(widget, 'Open') && !!button(widget, 'Cancel'));
    button(widget, 'Open')?.click();
    button(widget, 'Cancel')?.click();
    expect(actions.open).toHaveBeenCalledWith(RUN);
    expect(actions.cancel).toHaveBeenCalledWith(RUN);
    dispose();
  });
});
