import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, MainAreaWidget } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { openNodeTerminal } from '../terminal';
import { INodeTerminal } from '../types';

const trans = nullTranslator.load('hyperpod_jlab');
const LINE = 'aws ssm start-session --target sagemaker-cluster:ab_w-i-0';

/** A session with a shell that prints its prompt when the test says so. */
class FakeSession {
  readonly messageReceived = new Signal<this, unknown>(this);
  readonly sent: unknown[] = [];

  send(message: unknown): void {
    this.sent.push(message);
  }
}

describe('openNodeTerminal', () => {
  let session: FakeSession;
  let created: number;

  beforeEach(() => {
    session = new FakeSession();
    created = 0;
  });

  afterEach(() => Dialog.flush());

  function application(isAvailable = true): JupyterFrontEnd {
    const commands = new CommandRegistry();
    commands.addCommand('terminal:create-new', {
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        created += 1;
        const content = Object.assign(new Widget(), { session });
        return new MainAreaWidget({ content });
      }
    });
    const terminals = { isAvailable: () => isAvailable };
    return {
      commands,
      serviceManager: { terminals }
    } as unknown as JupyterFrontEnd;
  }

  function terminal(missing: string[] = []): INodeTerminal {
    return answerOf('HyperpodTerminal', {
      instance: 'i-0',
      line: LINE,
      missing: missing.map(name => ({ name, what: `get ${name}` }))
    });
  }

  it('types the line once the shell is there', async () => {
    const opening = openNodeTerminal(application(), terminal(), trans);
    await until(() => created === 1);
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(session.sent).toEqual([]);
    session.messageReceived.emit({ type: 'stdout', content: ['$ '] });
    expect(await opening).toBe(true);
    expect(session.sent).toEqual([{ type: 'stdin', content: [`${LINE}\r`] }]);
  });

  it.each([
    { why: 'a program is missing', missing: ['aws'], isAvailable: true },
    { why: 'the server has no terminals', missing: [], isAvailable: false }
  ])('shows the command where $why', async ({ isAvailable, missing }) => {
    const app = application(isAvailable);
    const opening = openNodeTerminal(app, terminal(missing), trans);
    await until(() => document.querySelector('.jp-Dialog pre') !== null);
    const dialog = document.querySelector('.jp-Dialog');
    expect(dialog?.querySelector('pre')?.textContent).toBe(LINE);
    const words = dialog?.textContent ?? '';
    expect(words.includes('get aws')).toBe(missing.length > 0);
    expect(words.includes('Terminals are not available')).toBe(!isAvailable);
    dialog?.querySelector<HTMLElement>('.jp-mod-reject')?.click();
    expect(await opening).toBe(false);
    expect(created).toBe(0);
  });
});
