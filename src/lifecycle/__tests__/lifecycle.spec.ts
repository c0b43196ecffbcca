import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { ILifecycleClient } from '../client';
import { LifecycleLine } from '../line';
import { LifecycleLogPage } from '../logPage';
import { LifecycleModel } from '../model';
import { ILifecycle, ILifecycleLog } from '../types';

const trans = nullTranslator.load('hyperpod_jlab');

/** What the server answers. */
function told(state: string, steps: [string, string, string][] = []) {
  return answerOf('LifecycleAnswer', {
    state,
    app: 'jupyterlab',
    started_at: '2026-01-06T09:00:00.000Z',
    updated_at: '2026-01-06T09:00:05.000Z',
    steps: steps.map(([name, how, message]) => ({ name, state: how, message })),
    problem: null
  });
}

class FakeClient implements ILifecycleClient {
  answers: (ILifecycle | ApiError)[] = [];
  text: ILifecycleLog | ApiError = { path: '/a.log', text: 'one', cut: false };
  reads = 0;

  read(): Promise<ILifecycle> {
    this.reads++;
    const answer =
      this.answers.length > 1 ? this.answers.shift() : this.answers[0];
    return answer instanceof ApiError || answer === undefined
      ? Promise.reject(answer ?? new Error('nothing'))
      : Promise.resolve(answer);
  }

  log(): Promise<ILifecycleLog> {
    return this.text instanceof ApiError
      ? Promise.reject(this.text)
      : Promise.resolve(this.text);
  }
}

const AT_WORK: [string, string, string][] = [
  ['package', 'done', 'hyperpod_jlab 0.1.0'],
  ['client', 'running', ''],
  ['doctor', 'waiting', '']
];
const opened: string[] = [];

function shown(client: FakeClient): LifecycleLine {
  const model = new LifecycleModel(client, 5);
  const line = new LifecycleLine(model, () => opened.push('log'), trans);
  Widget.attach(line, document.body);
  return line;
}

function button(line: Widget, name: string): HTMLButtonElement {
  const found = [...line.node.querySelectorAll('button')].find(
    one => one.textContent === name
  );
  expect(found).toBeDefined();
  return found as HTMLButtonElement;
}

describe('LifecycleLine', () => {
  it('shows how far it is while it works, and nothing when it is done', async () => {
    const client = new FakeClient();
    client.answers = [told('running', AT_WORK)];
    const line = shown(client);
    await until(() => line.node.querySelector('progress') !== null);
    const bar = line.node.querySelector('progress');
    expect([bar?.value, bar?.max]).toEqual([1, 3]);
    expect(line.node.querySelector('[role=status]')?.textContent).toContain(
      'Slurm commands'
    );
    client.answers = [told('done')];
    await until(() => line.node.textContent === '');
    // It is over: nobody asks any more.
    const { reads } = client;
    await new Promise(resolve => setTimeout(resolve, 40));
    expect(client.reads).toBe(reads);
    line.dispose();
  });

  it.each(['none', 'done'])('says nothing when it is %s', async state => {
    const client = new FakeClient();
    client.answers = [told(state)];
    const line = shown(client);
    await until(() => client.reads === 1);
    await new Promise(resolve => setTimeout(resolve, 20));
    expect(line.node.textContent).toBe('');
    line.dispose();
  });

  it('names what failed, opens the log, and goes when it is dismissed', async () => {
    const client = new FakeClient();
    client.answers = [
      told('failed', [['client', 'failed', 'no partition is mounted']])
    ];
    const line = shown(client);
    await until(() => line.node.querySelector('[role=alert]') !== null);
    expect(line.node.textContent).toContain(
      'Slurm commands: no partition is mounted'
    );
    button(line, 'Open log').click();
    expect(opened).toEqual(['log']);
    button(line, 'Dismiss').click();
    await until(() => line.node.textContent === '');
    line.dispose();
  });

  it('says when it has stopped, and when its file is none', async () => {
    const client = new FakeClient();
    client.answers = [told('stopped', AT_WORK)];
    let line = shown(client);
    await until(() => (line.node.textContent ?? '').includes('has stopped'));
    line.dispose();
    const problem = { code: 'x', message: 'it is no status', hint: null };
    client.answers = [
      answerOf('LifecycleAnswer', {
        ...{ state: 'unknown', app: null, started_at: null, steps: [] },
        ...{ updated_at: null, problem: { ...problem, detail: {} } }
      })
    ];
    line = shown(client);
    await until(() => (line.node.textContent ?? '').includes('no status'));
    button(line, 'Dismiss').click();
    await until(() => line.node.textContent === '');
    line.dispose();
  });

  it('is silent while the server does not answer, and goes on after it', async () => {
    const client = new FakeClient();
    client.answers = [
      told('running', AT_WORK),
      ApiError.local('network', 'away'),
      told('running', AT_WORK),
      told('done')
    ];
    const line = shown(client);
    await until(() => client.reads >= 4);
    await until(() => line.node.textContent === '');
    line.dispose();
  });
});

describe('LifecycleLogPage', () => {
  it('shows the end of the log, and why not', async () => {
    const client = new FakeClient();
    const page = new LifecycleLogPage(client, trans);
    Widget.attach(page, document.body);
    await until(() => page.node.querySelector('pre')?.textContent === 'one');
    client.text = { path: '/a.log', text: '<b>two</b>', cut: true };
    button(page, 'Refresh').click();
    await until(
      () => page.node.querySelector('pre')?.textContent === '<b>two</b>'
    );
    expect(page.node.textContent).toContain('Last lines of /a.log');
    client.text = ApiError.local('no_lifecycle_log', 'there is no log');
    button(page, 'Refresh').click();
    await until(() => (page.node.textContent ?? '').includes('no log'));
    page.dispose();
  });
});
