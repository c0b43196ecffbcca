import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { until } from '../../__tests__/until';
import { Hint, parseHint, plainText, setHintCommands } from '../hint';

const trans = nullTranslator.load('hyperpod_jlab');
const parsed = (hint: string) => {
  const { actions, text } = parseHint(hint, trans);
  return [text, ...actions.map(one => one.label)];
};

describe('a hint', () => {
  const RUN = '20261121-120455-k3x9qd';

  it.each([
    ['ask your administrator', ['ask your administrator']],
    [
      'use another queue with --queue; list queues with: hpj queues',
      ['use another queue', 'Show clusters']
    ],
    [
      'request fewer with --nodes, or use another queue; list queues with: hpj queues',
      ['request fewer, or use another queue', 'Show clusters']
    ],
    [`see its log: hpj logs ${RUN}`, ['', 'Open log']],
    [
      `ports are available while a run is running; see: hpj why ${RUN}`,
      ['ports are available while a run is running', 'Open run']
    ],
    [
      'check its state before you try again: hpj nodes ml',
      ['check its state before you try again', 'Open ml']
    ],
    [
      'add it to the configuration: hpj config add research-eks',
      ['add it to the configuration', 'Connect research-eks']
    ],
    [
      'submit long runs to another cluster; hpj doctor shows whether and when this space is stopped',
      ['submit long runs to another cluster', 'Run HyperPod Doctor']
    ],
    ["'hpj nodes ml' shows states and their reasons", ['', 'Open ml']],
    [
      "wait for its end or agree on one; 'hpj admin status' shows the current state",
      ['wait for its end or agree on one']
    ],
    [
      'use --time-limit 2h or less, or another queue',
      ['use time limit 2h or less, or another queue']
    ],
    [
      '--take-over removes it',
      ['“Overwrite settings that were made elsewhere” removes it']
    ],
    // Nothing here does that: as it is.
    ['reboot it instead: hpj node reboot', ['reboot it instead']],
    ['hpj metrics last', ['hpj metrics last']]
  ])('of “%s”', (hint, expected) => {
    expect(parsed(hint)).toEqual(expected);
  });

  it('loses what is typed in a terminal where it is a sentence', () => {
    expect(
      plainText('folders are not checked: use --folders (in a stack: Folders)')
    ).toBe('folders are not checked');
    expect(
      plainText("All folders are kept: /a. 'hpj admin destroy' deletes; later")
    ).toBe('later');
  });

  it('offers what the application has, and does it', async () => {
    const commands = new CommandRegistry();
    const done: unknown[] = [];
    commands.addCommand('hyperpod:open-cluster', {
      describedBy: { args: {} },
      execute: args => void done.push(args)
    });
    setHintCommands(commands);
    const shown = ReactWidget.create(
      React.createElement(Hint, {
        hint: 'check it: hpj nodes ml; see: hpj doctor',
        trans
      })
    );
    Widget.attach(shown, document.body);
    await until(() => shown.node.querySelector('button') !== null);
    // Nothing there opens the doctor.
    expect(shown.node.textContent).toBe('check itOpen ml');
    shown.node.querySelector('button')?.click();
    expect(done).toEqual([{ cluster: 'ml' }]);
    shown.dispose();
    setHintCommands(null);
  });
});
