import { Dialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { filledDialog, until } from '../../__tests__/until';
import { FakeEventClient } from '../../events/__tests__/fakes';
import {
  abilities,
  FakeNodeClient,
  problem
} from '../../nodes/__tests__/fakes';
import { FakeClusterClient, NODE, nodes, storeOf } from './clusterFakes';
import { NodesTable } from '../nodesTable';
import { ClusterView } from '../view';

const trans = nullTranslator.load('hyperpod_jlab');
const SECOND = {
  ...NODE,
  name: 'ip-10-0-0-2',
  instance: 'i-0123456789abcdef1'
};

/** What must be on the page. */
function shown<T>(found: T | null | undefined): T {
  if (!found) {
    throw new Error('it is not shown');
  }
  return found;
}

describe('Nodes of a cluster', () => {
  let client: FakeClusterClient;
  let nodeClient: FakeNodeClient;
  let openTerminal: jest.Mock;
  let openLogs: jest.Mock;
  let page: Widget;
  let view: ClusterView;

  beforeEach(() => {
    client = new FakeClusterClient();
    client.nodeAnswer = nodes([NODE, SECOND]);
    nodeClient = new FakeNodeClient();
    openTerminal = jest.fn();
    openLogs = jest.fn();
    const cluster = 'ml-cluster';
    view = new ClusterView(client, cluster, storeOf(client));
    const props = {
      ...{ client, cluster, nodeClient, openLogs, openTerminal, trans },
      view,
      eventClient: new FakeEventClient(),
      openRun: jest.fn(),
      node: null,
      isShown: () => page.isVisible
    };
    page = ReactWidget.create(React.createElement(NodesTable, props));
    Widget.attach(page, document.body);
  });

  afterEach(() => {
    Dialog.flush();
    page.dispose();
    view.dispose();
  });

  async function show(): Promise<void> {
    await until(
      () => button('Reboot…') !== undefined && box(SECOND.name) !== null
    );
  }

  function button(name: string, root: ParentNode = page.node) {
    return Array.from(root.querySelectorAll('button')).find(
      one => one.textContent === name || one.getAttribute('aria-label') === name
    );
  }

  function box(name: string): HTMLInputElement | null {
    return page.node.querySelector(`input[aria-label="Select ${name}"]`);
  }

  function dialog(): HTMLElement | null {
    return document.querySelector('.jp-Dialog');
  }

  function lines(): (string | null)[] {
    const items = page.node.querySelectorAll('.jp-HyperPod-Results li');
    return Array.from(items).map(item => item.textContent);
  }

  async function press(name: string): Promise<HTMLElement> {
    button(name)?.click();
    return filledDialog();
  }

  it.each([
    [true, 10_000],
    [false, 60_000]
  ])('are read again in time (changing: %s)', async (changing, wait) => {
    client.nodeAnswer = nodes([NODE, SECOND], { changing });
    const interval = jest.spyOn(window, 'setInterval');
    await show();
    const waits = () => interval.mock.calls.map(([, time]) => time);
    await until(() => waits().includes(wait));
    expect(waits()).not.toContain(70_000 - wait);
    interval.mockRestore();
  });

  it('does nothing before a node is chosen', async () => {
    await show();
    expect(button('Reboot…')?.getAttribute('aria-disabled')).toBe('true');
    button('Reboot…')?.click();
    expect(nodeClient.previews).toEqual([]);
  });

  it('acts on the node in view, whichever are chosen', async () => {
    await show();
    box(SECOND.name)?.click();
    button(NODE.name)?.click();
    const reboot = () => {
      const drawer = page.node.querySelector('.jp-HyperPod-Drawer');
      return drawer ? button('Reboot…', drawer) : undefined;
    };
    await until(() => reboot() !== undefined);
    reboot()?.click();
    await filledDialog();
    expect(nodeClient.previews).toEqual([
      { action: 'reboot', nodes: [NODE.name] }
    ]);
  });

  it('says what becomes of the nodes, and does nothing when that is not wanted', async () => {
    await show();
    box(NODE.name)?.click();
    const asked = await press('Reboot…');
    const words = asked.textContent ?? '';
    expect(words).toContain('all work on the nodes ends');
    expect(words).toContain('job 7 (train, of ada) ends');
    expect(words).toContain('which jobs run is not known');
    button('Cancel', asked)?.click();
    await until(() => dialog() === null);
    expect(nodeClient.orders).toEqual([]);
  });

  it('does it to those that were shown, and has one result for each', async () => {
    nodeClient.refusals[SECOND.name] = problem(
      'controller_node',
      'AWS replaces none'
    );
    await show();
    box(NODE.name)?.click();
    box(SECOND.name)?.click();
    const asked = await press('Replace…');
    expect(asked.textContent).toContain('Skipped: AWS replaces none');
    const title = asked.querySelector('.jp-Dialog-header')?.textContent;
    expect(title).toBe('Replace 1 node');
    const reads = client.queries.length;
    button('Replace 1 node', asked)?.click();
    await until(() => lines().length === 2);
    expect(nodeClient.orders).toEqual([
      ['ml-cluster', { action: 'replace', nodes: [NODE.name] }]
    ]);
    expect(lines()).toEqual([
      `${NODE.name} (ip-${NODE.name}) is being replaced.`,
      `${SECOND.name} (ip-${SECOND.name}): AWS replaces none`
    ]);
    // The rows are read again; what is done is chosen no more.
    await until(() => client.queries.length > reads);
    await until(() => box(NODE.name)?.checked === false);
    expect(box(SECOND.name)?.checked).toBe(true);
  });

  it('asks why before it drains', async () => {
    await show();
    box(NODE.name)?.click();
    const asked = await press('Drain…');
    const input = shown(asked.querySelector('input'));
    const confirm = shown(button('Drain 1 node', asked));
    await until(() => confirm.disabled);
    const set = Object.getOwnPropertyDescriptor(
      HTMLInputElement.prototype,
      'value'
    )?.set;
    set?.call(input, ' GPU 3 falls off the bus ');
    input.dispatchEvent(new Event('input', { bubbles: true }));
    expect(confirm.disabled).toBe(false);
    confirm.click();
    await until(() => nodeClient.orders.length === 1);
    expect(nodeClient.orders[0][1]).toEqual({
      action: 'drain',
      nodes: [NODE.name],
      reason: 'GPU 3 falls off the bus'
    });
  });

  it('resumes without a question', async () => {
    await show();
    box(NODE.name)?.click();
    button('Resume')?.click();
    await until(() => lines().length === 1);
    expect(dialog()).toBeNull();
    expect(lines()).toEqual([`${NODE.name} accepts jobs again.`]);
  });

  it('says once why something can’t be had, and does not do it', async () => {
    const none = problem('no_configured_cluster', 'there is no scheduler');
    nodeClient.abilityAnswer = abilities({ drain: none, resume: none });
    await show();
    box(NODE.name)?.click();
    const notes = Array.from(page.node.querySelectorAll('[role=note]'));
    const said = notes.filter(note => note.textContent === none.message);
    expect(said.length).toBe(1);
    expect(button('Resume')?.getAttribute('aria-describedby')).toBe(said[0].id);
    button('Resume')?.click();
    button('Drain…')?.click();
    expect(nodeClient.orders).toEqual([]);
    expect(nodeClient.previews).toEqual([]);
    expect(button('Reboot…')?.getAttribute('aria-disabled')).toBe('false');
  });

  it('names the right that was missing, and offers it no more until that is read', async () => {
    const words = 'AWS does not let you sagemaker:BatchRebootClusterNodes';
    nodeClient.errors[NODE.name] = problem('missing_right', words);
    await show();
    box(NODE.name)?.click();
    button('Reboot 1 node', await press('Reboot…'))?.click();
    await until(() => lines().length === 1);
    expect(lines()[0]).toContain(words);
    expect(button('Reboot…')?.getAttribute('aria-disabled')).toBe('true');
    expect(button('Replace…')?.getAttribute('aria-disabled')).toBe('false');
    button('Close')?.click();
    await until(
      () => button('Reboot…')?.getAttribute('aria-disabled') === 'false'
    );
  });

  it('has a terminal and logs for each instance, and none for what AWS does not list', async () => {
    const lost = { name: 'ip-10-0-0-9', state: 'up' };
    client.nodeAnswer = nodes([NODE, lost]);
    await until(() => box(lost.name) !== null);
    expect(button(`Open a terminal on ${lost.name}`)).toBeUndefined();
    button(`Open a terminal on ${NODE.name}`)?.click();
    expect(openTerminal.mock.calls).toEqual([[NODE.instance]]);
    expect(button(`Show the logs of ${lost.name}`)).toBeUndefined();
    button(`Show the logs of ${NODE.name}`)?.click();
    expect(openLogs.mock.calls).toEqual([[NODE.instance]]);
  });

  it('have no instances and no actions where neither AWS nor a scheduler does anything to them', async () => {
    const none = problem('unsupported', 'local clusters cannot');
    const aws = problem('no_hyperpod_cluster', 'it is no HyperPod cluster');
    nodeClient.abilityAnswer = abilities({
      reboot: aws,
      replace: aws,
      drain: none,
      resume: none
    });
    client.nodeAnswer = nodes([{ name: 'n1', state: 'up' }], { as_of: null });
    await until(() => page.node.textContent?.includes('n1') ?? false);
    await new Promise(resolve => setTimeout(resolve, 50));
    const heads = Array.from(page.node.querySelectorAll('th'));
    expect(heads.map(head => head.textContent)).toEqual(['Node', 'State']);
    expect(box('n1')).toBeNull();
    expect(button('Reboot…')).toBeUndefined();
    expect(page.node.textContent).not.toContain('no HyperPod cluster');
  });
});
