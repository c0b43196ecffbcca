import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { HyperPodClient } from '../../api';
import { LogSocket } from '../../logs';
import {
  block,
  FakeSocket,
  frame,
  page,
  wire
} from '../../logs/__tests__/fakes';
import { NodeLogPage } from '../page';

const trans = nullTranslator.load('hyperpod_jlab');
const LIFECYCLE = 'LifecycleConfig/workers/i-1';
const HEALTH = 'SagemakerHealthMonitoringAgent/workers/i-1';

/** Answers as the server does, and books what is asked. */
function fakeClient(asked: [string, unknown][]): HyperPodClient {
  const answers: Record<string, unknown> = {
    'clusters/c/nodes/i-1/logs': {
      logs: [
        { stream: LIFECYCLE, kind: 'lifecycle' },
        { stream: HEALTH, kind: 'health' }
      ]
    },
    'clusters/c/logs': { logs: [] },
    'clusters/c/logs/page': page('c0', [
      frame('c1', block(['mounted'], { node: LIFECYCLE, rank: null }))
    ])
  };
  return {
    get: (path: string, { query }: { query?: unknown } = {}) => {
      asked.push([path, query]);
      return Promise.resolve(answers[path]);
    }
  } as unknown as HyperPodClient;
}

function setHidden(hidden: boolean): void {
  Object.defineProperty(document, 'hidden', {
    configurable: true,
    get: () => hidden
  });
  document.dispatchEvent(new Event('visibilitychange'));
}

describe('NodeLogPage', () => {
  let asked: [string, unknown][];
  let made: FakeSocket[];
  let shown: NodeLogPage;

  beforeEach(async () => {
    asked = [];
    made = [];
    const socket = new LogSocket({
      connect: () => {
        made.push(new FakeSocket());
        return made[made.length - 1];
      }
    });
    const client = fakeClient(asked);
    shown = new NodeLogPage({
      client,
      cluster: 'c',
      node: 'i-1',
      socket,
      trans
    });
    const list = shown.log.node.querySelector('[role="log"]');
    if (list) {
      Object.defineProperty(list, 'clientHeight', { value: 360 });
    }
    Widget.attach(shown, document.body);
    await until(() => made.length === 1);
    made[0].open();
  });

  afterEach(() => {
    shown.dispose();
    setHidden(false);
  });

  it('follows the logs of the node behind the page that it has', () => {
    expect(asked.filter(([path]) => path === 'clusters/c/logs/page')).toEqual([
      [
        'clusters/c/logs/page',
        expect.objectContaining({ streams: [LIFECYCLE, HEALTH] })
      ]
    ]);
    expect(made[0].sent).toEqual([
      {
        type: 'subscribe',
        id: 1,
        cluster: 'c',
        streams: [LIFECYCLE, HEALTH],
        cursor: 'c1'
      }
    ]);
  });

  it('shows new lines behind the word for their log', async () => {
    const { window } = shown.log.model.feed;
    const sent = frame('c2', block(['Xid'], { node: HEALTH, rank: null }));
    made[0].say(wire(1, 1, sent));
    await until(() => window.length === 2);
    const row = (text: string) =>
      Array.from(shown.node.querySelectorAll('.jp-HyperPod-LogRow'))
        .map(({ textContent }) => textContent ?? '')
        .find(content => content.includes(text));
    await until(() => row('Xid') !== undefined);
    expect(row('mounted')).toContain('lifecycle');
    expect(row('Xid')).toContain('health');
    expect(made[0].sent[1]).toEqual({ type: 'ack', id: 1, seq: 1 });
  });

  it('follows nothing while the page in the browser is hidden', async () => {
    setHidden(true);
    expect(made[0].closed).toBe(true);
    expect(made).toHaveLength(1);
    setHidden(false);
    await until(() => made.length === 2);
  });

  it('follows another log that is chosen', async () => {
    const select = shown.node.querySelector('select');
    expect(select).not.toBeNull();
    if (select) {
      select.value = HEALTH;
      select.dispatchEvent(new Event('change', { bubbles: true }));
    }
    await until(() => made.length === 2);
    made[1].open();
    expect(made[1].sent[0]).toEqual(
      expect.objectContaining({ cluster: 'c', streams: [HEALTH] })
    );
  });
});
