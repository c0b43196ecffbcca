import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { INodeServices, IRunAccess, portOf, portPath } from '../access';
import { WaysIn } from '../waysIn';
import { run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

const SHELLS = [
  { node_rank: 0, node: 'node1', command: 'kubectl exec a' },
  { node_rank: 1, node: null, command: 'kubectl exec b' }
];

describe('A port', () => {
  it.each([
    ['6006', 6006],
    [' 1 ', 1],
    ['65535', 65535],
    ['65536', null],
    ['0', null],
    ['-1', null],
    ['80 81', null],
    ['', null]
  ])('typed as %j is %j', (text, port) => {
    expect(portOf(text)).toBe(port);
  });

  it('names the node unless it is the first', () => {
    expect(portPath(0, 80)).toBe('80');
    expect(portPath(2, 80)).toBe('2:80');
  });
});

describe('WaysIn', () => {
  let widget: Widget;
  let done: string[];
  let asked: number;

  async function show(
    answer: Record<string, unknown>,
    state = 'running',
    isOffered = true,
    services: readonly INodeServices[] = []
  ): Promise<HTMLElement> {
    done = [];
    asked = 0;
    const load = (): Promise<IRunAccess> => {
      asked += 1;
      return Promise.resolve(answerOf('RunAccess', { run_id: 'x', ...answer }));
    };
    const element = React.createElement(WaysIn, {
      run: run(1, { state }),
      trans,
      isOffered,
      services,
      load,
      openPort: (node, port) => done.push(`${node}:${port}`),
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

  it('is not there where there is no way in', async () => {
    const waiting = await show({ ports: true }, 'waiting');
    expect(waiting.querySelector('details')).toBeNull();
    widget.dispose();
    const elsewhere = await show({ ports: true }, 'running', false);
    expect(elsewhere.querySelector('details')).toBeNull();
    expect(asked).toBe(0);
  });

  it('opens TensorBoard’s port unless another is typed', async () => {
    const node = await show({ ports: true, shells: SHELLS });
    expect(asked).toBe(0);
    await open(node);
    const button = node.querySelector<HTMLElement>('button[type="submit"]');
    button?.click();
    expect(done).toEqual(['0:6006']);
  });

  it('copies the command of each node', async () => {
    const node = await show({ ports: true, shells: SHELLS });
    await open(node);
    const items = Array.from(node.querySelectorAll('li'));
    expect(items.map(item => item.querySelector('span')?.textContent)).toEqual([
      'Shell on 0 (node1)',
      'Shell on 1'
    ]);
    items[1].querySelector('button')?.click();
    expect(done).toEqual(['kubectl exec b']);
  });

  it('opens what listens and copies the command for log folders by one click', async () => {
    const folder = "/fsx/it's here";
    const services = [
      { node_rank: 0, ports: [6006, 8888], log_folders: ['/fsx/logs', folder] },
      { node_rank: 2, ports: [8000], log_folders: ['/fsx/logs'] }
    ];
    const node = await show({ ports: true }, 'running', true, services);
    const buttons = Array.from(
      node.querySelectorAll<HTMLElement>('.jp-HyperPod-WaysIn-services button')
    );
    expect(buttons.map(button => button.textContent)).toEqual([
      'Open TensorBoard (node 0)',
      'Open port 8888 (node 0)',
      'Open port 8000 (node 2)',
      'Copy TensorBoard command',
      'Copy TensorBoard command'
    ]);
    buttons.forEach(button => button.click());
    expect(done).toEqual([
      '0:6006',
      '0:8888',
      '2:8000',
      'tensorboard --logdir /fsx/logs',
      `tensorboard --logdir '/fsx/it'"'"'s here'`
    ]);
    // The cluster was not asked.
    expect(asked).toBe(0);
  });

  it('says what is missing', async () => {
    const reason = 'the right to create pods/portforward is missing';
    const node = await show({ ports: false, reason });
    await open(node);
    expect(node.textContent).toContain(reason);
    expect(node.querySelector('form')).toBeNull();
  });
});
