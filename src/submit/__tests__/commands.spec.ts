import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification } from '@jupyterlab/apputils';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { Preferences } from '../../settings';
import { CommandIDs, IHyperPod } from '../../tokens';
import { addSubmitCommands } from '../commands';
import { RunIds } from '../runId';
import { ITools } from '../tools';
import { clusters, FakeMemory, FakeServer, runOf, trans } from './fakes';
import { SCHEMA } from './schema';

const PATH = 'work/train.ipynb';

/** As much of an open notebook as is sent. */
const NOTEBOOK = {
  context: {
    path: PATH,
    model: {
      sharedModel: {
        nbformat: 4,
        nbformat_minor: 5,
        getMetadata: () => ({}),
        cells: [
          {
            cell_type: 'code',
            id: 'a',
            getSource: () => 'x = 1',
            getMetadata: () => undefined
          }
        ]
      }
    }
  },
  content: { selectedCells: [{ model: { type: 'code', id: 'a' } }] }
};

describe('the submit commands', () => {
  let server: FakeServer;
  let commands: CommandRegistry;
  let memory: FakeMemory;

  beforeEach(() => {
    server = new FakeServer();
    commands = new CommandRegistry();
    const contents = { localPath: (path: string) => path };
    memory = new FakeMemory();
    memory.lasts.set(PATH, { runId: 'old', cluster: 'ml', spec: {} });
    const runs = { start: jest.fn(), get: () => Promise.resolve(runOf('x')) };
    addSubmitCommands({
      app: {
        commands,
        serviceManager: { contents }
      } as unknown as JupyterFrontEnd,
      hyperPod: {
        clusterClient: clusters,
        preferences: new Preferences(),
        runs,
        trans
      } as unknown as IHyperPod,
      client: server,
      cells: {
        ofNotebook: () => Promise.resolve({ runs: [], cells: [] }),
        ofRun: () => Promise.resolve({ notebook: null, path: null, cells: [] })
      },
      memory,
      runIds: new RunIds(),
      drafts: new Map(),
      pauses: [1, 1],
      notebooks: { currentWidget: NOTEBOOK } as unknown as INotebookTracker,
      browsers: null,
      documents: null
    } satisfies ITools);
  });

  afterEach(() => {
    Notification.dismiss();
    Dialog.flush();
  });

  function sentIds(): Set<string> {
    return new Set(server.submits.map(body => body.run_id));
  }

  it('run the same again as the same run until the server has answered', async () => {
    const answer = server.answerSubmit;
    server.answerSubmit = () =>
      Promise.reject(ApiError.local('network', 'no answer'));
    const sent = commands.execute(CommandIDs.runAgain);
    await expect(sent).rejects.toThrow('no answer');
    expect(document.querySelector('.jp-Dialog')).toBeNull();
    const [told] = Notification.manager.notifications;
    expect(told.message).toContain('unknown whether train.ipynb was submitted');
    server.answerSubmit = answer;
    await commands.execute(CommandIDs.runAgain);
    expect(sentIds().size).toBe(1);
    await commands.execute(CommandIDs.runAgain);
    expect(sentIds().size).toBe(2);
  });

  it('run the same again with the parameters that were sent', async () => {
    const parameters = { lr: 0.1 };
    const spec = { source: { parameters } };
    memory.lasts.set(PATH, { runId: 'old', cluster: 'ml', spec });
    await commands.execute(CommandIDs.runAgain);
    expect(server.submits[0].spec.source).toMatchObject({ parameters });
  });

  it('ask for nothing more once the dialog is closed', async () => {
    let read: () => void = () => undefined;
    const wait = new Promise<void>(resolve => (read = resolve));
    server.schema = () => wait.then(() => SCHEMA);
    const asked = commands.execute(CommandIDs.runCells);
    const close = (): HTMLElement | null =>
      document.querySelector('.jp-Dialog-button.jp-mod-reject');
    await until(() => close() !== null);
    close()?.click();
    expect(await asked).toBeNull();
    read();
    await new Promise(resolve => setTimeout(resolve, 100));
    expect(server.previews).toEqual([]);
  });

  it('find what a closed dialog said, until it is sent', async () => {
    const find = <T extends HTMLElement>(selector: string): T | null =>
      document.querySelector<T>(`.jp-Dialog ${selector}`);
    const nodes = () =>
      find<HTMLInputElement>('[data-field="resources.nodes"]');
    const draft = () =>
      [...document.querySelectorAll('.jp-HyperPod-Choice')].find(
        one => one.textContent === 'Draft'
      );
    const first = commands.execute(CommandIDs.runCells);
    await until(() => nodes() !== null);
    expect(draft()).toBeUndefined();
    const input = nodes();
    Object.getOwnPropertyDescriptor(
      HTMLInputElement.prototype,
      'value'
    )?.set?.call(input, '3');
    input?.dispatchEvent(new Event('input', { bubbles: true }));
    find('.jp-Dialog-button.jp-mod-reject')?.click();
    expect(await first).toBeNull();
    const second = commands.execute(CommandIDs.runCells);
    await until(() => nodes()?.value === '3');
    expect(draft()?.getAttribute('aria-pressed')).toBe('true');
    await until(() => find('.jp-mod-accept:not(:disabled)') !== null);
    find('.jp-mod-accept')?.click();
    await second.catch(() => undefined);
    const third = commands.execute(CommandIDs.runCells);
    await until(() => nodes() !== null);
    expect(draft()).toBeUndefined();
    find('.jp-Dialog-button.jp-mod-reject')?.click();
    await third;
  });

  it('ask whether to submit what may cost more than the limit', async () => {
    const over = 'the run may cost 200.00 USD';
    server.answerSubmit = body =>
      body.accept_cost
        ? Promise.resolve(runOf(body.run_id))
        : Promise.reject(ApiError.local('cost_not_confirmed', over, 422));
    const press = async (label: string) => {
      const find = () =>
        [...document.querySelectorAll<HTMLElement>('.jp-Dialog-button')].find(
          one => one.textContent === label
        );
      await until(() => find() !== undefined);
      const body = document.querySelector('.jp-Dialog-body');
      expect(body?.textContent).toBe('The run may cost 200.00 USD.');
      find()?.click();
    };
    const first = commands.execute(CommandIDs.runAgain);
    await press('Cancel');
    expect(await first).toBeNull();
    expect(server.submits).toHaveLength(1);
    const second = commands.execute(CommandIDs.runAgain);
    await press('Submit anyway');
    expect(await second).toMatchObject({ name: 'train' });
    expect(server.submits.map(body => body.accept_cost)).toEqual([
      undefined,
      undefined,
      true
    ]);
  });

  it('ask in the dialog when the server says no', async () => {
    server.answerSubmit = () =>
      Promise.reject(ApiError.local('invalid_spec', 'No such queue.', 422));
    const asked = commands.execute(CommandIDs.runAgain);
    await until(() => document.querySelector('.jp-Dialog') !== null);
    expect(server.submits).toHaveLength(1);
    Dialog.flush();
    await asked.catch(() => undefined);
  });
});
