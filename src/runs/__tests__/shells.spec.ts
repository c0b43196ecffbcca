import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { IRunAccess } from '../access';
import { RunShells } from '../shells';
import { run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

const SHELLS = [
  { node_rank: 0, node: 'node1', command: 'kubectl exec a' },
  { node_rank: 1, node: null, command: 'kubectl exec b' }
];

describe('RunShells', () => {
  let widget: Widget;
  let done: string[];
  let asked: number;

  async function show(
    answer: Record<string, unknown>,
    state = 'running',
    isOffered = true,
    logFolders: readonly string[] = []
  ): Promise<HTMLElement> {
    done = [];
    asked = 0;
    const load = (): Promise<IRunAccess> => {
      asked += 1;
      return Promise.resolve(answerOf('RunAccess', { run_id: 'x', ...answer }));
    };
    const element = React.createElement(RunShells, {
      run: run(1, { state }),
      trans,
      isOffered,
      logFolders,
      load,
      copy: command => done.push(command)
    });
    const heading = React.createElement('h1');
    widget = ReactWidget.create(
      React.createElement('div', null, heading, element)
    );
    Widget.attach(widget, document.body);
    await until(() => widget.node.querySelector('h1') !== null);
    return widget.node;
  }

  async function open(node: HTMLElement): Promise<void> {
    const details = node.querySelector('details');
    if (!details) {
      throw new Error('nothing to open');
    }
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    await until(() => node.querySelector('.jp-HyperPod-link') !== null);
  }

  afterEach(() => widget.dispose());

  it('is not there without a running run or without shells', async () => {
    const waiting = await show({}, 'waiting');
    expect(waiting.querySelector('details')).toBeNull();
    widget.dispose();
    const elsewhere = await show({}, 'running', false);
    expect(elsewhere.querySelector('details')).toBeNull();
    expect(asked).toBe(0);
  });

  it('copies the command of each node', async () => {
    const node = await show({ shells: SHELLS });
    await open(node);
    const items = Array.from(node.querySelectorAll('li'));
    expect(items.map(item => item.querySelector('span')?.textContent)).toEqual([
      'Shell on 0 (node1)',
      'Shell on 1'
    ]);
    items[1].querySelector('button')?.click();
    expect(done).toEqual(['kubectl exec b']);
  });

  it('copies the command for each folder of TensorBoard events by one click', async () => {
    const folders = ['/fsx/logs', "/fsx/it's here"];
    const node = await show({}, 'running', false, folders);
    const buttons = Array.from(
      node.querySelectorAll<HTMLElement>('.jp-HyperPod-TensorBoards button')
    );
    expect(buttons.map(button => button.textContent)).toEqual([
      'Copy TensorBoard command',
      'Copy TensorBoard command'
    ]);
    buttons.forEach(button => button.click());
    expect(done).toEqual([
      'tensorboard --logdir /fsx/logs',
      `tensorboard --logdir '/fsx/it'"'"'s here'`
    ]);
    // The cluster was not asked.
    expect(asked).toBe(0);
  });

  it('says what is missing', async () => {
    const reason = 'the right to list pods is missing';
    const node = await show({ reason });
    await open(node);
    expect(node.textContent).toContain(reason);
  });
});
