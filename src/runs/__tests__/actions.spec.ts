import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';

import { IHyperPod } from '../../tokens';
import { actAfterQuestion, openMlflow, runAgain, switchTo } from '../actions';
import { RunsModel } from '../model';
import { IStartNow } from '../whyItWaits';
import { FakeRunClient, run } from './fakes';

function start(parts: Record<string, unknown>): IStartNow {
  return answerOf('StartNow', { text: 'otherwise', ...parts });
}

describe('Actions that fail', () => {
  const trans = nullTranslator.load('hyperpod_jlab');
  let client: FakeRunClient;
  let runs: RunsModel;
  let hyperPod: IHyperPod;
  let changes: string[];
  let opened: string[];
  const line = { name: 'local', default: true, actions: [] };

  function told(): Notification.INotification[] {
    return Notification.manager.notifications;
  }

  beforeEach(() => {
    client = new FakeRunClient();
    changes = ['time_limit', 'queue'];
    runs = new RunsModel({ client });
    const clusterClient = {
      queues: () => Promise.resolve(['dev']),
      configured: () =>
        Promise.resolve([answerOf('Cluster', { ...line, changes })])
    };
    hyperPod = {
      clusterClient,
      openRun: (runId: string) => {
        opened.push(runId);
        return Promise.resolve();
      },
      runClient: client,
      runs,
      trans
    } as unknown as IHyperPod;
    opened = [];
  });

  afterEach(() => {
    runs.dispose();
    Notification.dismiss();
  });

  it('says for a while that a run could not be cancelled', async () => {
    const done = actAfterQuestion(hyperPod, run(1), 'cancel');
    await until(() => document.querySelector('.jp-mod-accept') !== null);
    document.querySelector<HTMLElement>('.jp-mod-accept')?.click();
    await done;
    expect(told()[0].message).toContain('run 1 could not be cancelled. no run');
    expect(told()[0].options.autoClose).toBeGreaterThan(0);
    Dialog.flush();
  });

  it('says that a run could not be held, without a question', async () => {
    await actAfterQuestion(hyperPod, run(1), 'hold');
    expect(told()[0].message).toContain('run 1 could not be held. no run');
  });

  it('requeues only when that is wanted', async () => {
    const done = actAfterQuestion(hyperPod, run(1), 'requeue');
    await until(() => document.querySelector('.jp-mod-reject') !== null);
    document.querySelector<HTMLElement>('.jp-mod-reject')?.click();
    await done;
    expect(client.calls).toEqual([]);
    Dialog.flush();
  });

  it('sends what is to be changed, and nothing when nothing is', async () => {
    client.runs = [run(1)];
    for (const text of ['', '90m']) {
      const done = actAfterQuestion(hyperPod, run(1), 'change');
      await until(() => document.querySelector('.jp-Dialog input') !== null);
      const input =
        document.querySelector<HTMLInputElement>('.jp-Dialog input');
      if (input) {
        input.value = text;
      }
      document.querySelector<HTMLElement>('.jp-mod-accept')?.click();
      await done;
      Dialog.flush();
      await until(() => document.querySelector('.jp-Dialog') === null);
    }
    expect(client.calls).toContain(`change ${run(1).run_id} 90m null`);
  });

  it('shows the limit and the queue that are to be changed', async () => {
    const waiting = run(1, { state: 'waiting', queue: 'train' });
    client.runs = [waiting];
    client.glance = answerOf('RunOverview', {
      time_limit: 600,
      queue: 'train'
    });
    const done = actAfterQuestion(hyperPod, waiting, 'change');
    const field = <T extends Element>(name: string) =>
      document.querySelector<T>(`.jp-Dialog ${name}`);
    await until(() => field('option[value="dev"]') !== null);
    expect(field<HTMLInputElement>('input')?.value).toBe('10m');
    expect(field<HTMLSelectElement>('select')?.value).toBe('train');
    field<HTMLElement>('.jp-mod-accept')?.click();
    await done;
    expect(client.calls.filter(call => call.startsWith('change'))).toEqual([]);
    Dialog.flush();
  });

  it('does not offer another queue to what runs', async () => {
    client.runs = [run(1)];
    const done = actAfterQuestion(hyperPod, run(1), 'change');
    await until(() => document.querySelector('.jp-Dialog input') !== null);
    expect(document.querySelector('.jp-Dialog select')).toBeNull();
    document.querySelector<HTMLElement>('.jp-mod-reject')?.click();
    await done;
    Dialog.flush();
  });

  it('asks for no more than its cluster can change', async () => {
    const waiting = run(1, { state: 'waiting' });
    client.runs = [waiting];
    changes = ['queue'];
    const done = actAfterQuestion(hyperPod, waiting, 'change');
    await until(() => document.querySelector('option[value="dev"]') !== null);
    expect(document.querySelector('.jp-Dialog input')).toBeNull();
    const select =
      document.querySelector<HTMLSelectElement>('.jp-Dialog select');
    if (select) {
      select.value = 'dev';
    }
    document.querySelector<HTMLElement>('.jp-mod-accept')?.click();
    await done;
    expect(client.calls).toContain(`change ${run(1).run_id} null dev`);
    Dialog.flush();
  });

  it('moves a waiting run to another queue where it waits', async () => {
    client.runs = [run(1)];
    const app = { commands: {} } as unknown as JupyterFrontEnd;
    await switchTo(app, hyperPod, run(1), start({ queue: 'dev' }));
    expect(client.calls).toContain(`change ${run(1).run_id} null dev`);
    expect(opened).toEqual([]);
  });

  it('submits a run anew with fewer nodes before it cancels the old one', async () => {
    client.runs = [run(1)];
    const sent: unknown[] = [];
    const execute = (id: string, args: unknown) => {
      sent.push(id, args);
      return Promise.resolve({ run_id: 'new' });
    };
    const app = { commands: { execute } } as unknown as JupyterFrontEnd;
    await switchTo(app, hyperPod, run(1), start({ nodes: 1 }));
    expect(sent).toEqual([
      'hyperpod:submit',
      {
        cloneOf: run(1).run_id,
        spec: { resources: { nodes: 1 } },
        run: true
      }
    ]);
    expect(client.calls).toContain(`cancel ${run(1).run_id}`);
    expect(opened).toEqual(['new']);
  });

  it.each([
    [8, null],
    [1, 1]
  ])('with fewer GPUs, %s processes on a node become %s', async (had, gets) => {
    client.runs = [run(1)];
    client.spec = () =>
      Promise.resolve({
        resources: { nodes: 2, gpus_per_node: 8, processes_per_node: had }
      });
    const execute = jest.fn().mockResolvedValue({ run_id: 'new' });
    const app = { commands: { execute } } as unknown as JupyterFrontEnd;
    await switchTo(app, hyperPod, run(1), start({ gpus_per_node: 4 }));
    const resources = {
      nodes: 2,
      gpus_per_node: 4,
      processes_per_node: gets
    };
    expect(execute).toHaveBeenCalledWith(
      'hyperpod:submit',
      expect.objectContaining({ spec: { resources } })
    );
  });

  it('keeps a waiting run when the other one is refused', async () => {
    client.runs = [run(1)];
    const execute = () => Promise.reject(new Error('no quota'));
    const app = { commands: { execute } } as unknown as JupyterFrontEnd;
    await switchTo(app, hyperPod, run(1), start({ nodes: 1 }));
    expect(client.calls).not.toContain(`cancel ${run(1).run_id}`);
    expect(told()[0].message).toContain('no quota');
  });

  it('says why a run can’t be run again', async () => {
    const error = ApiError.local('not_found', 'There is no run 1.', 404);
    const execute = () => Promise.reject(error);
    const app = { commands: { execute } } as unknown as JupyterFrontEnd;
    await runAgain(app, hyperPod, run(1));
    expect(told()[0].message).toBe(
      'Cannot run run 1 again. There is no run 1.'
    );
  });
});

describe('Open MLflow', () => {
  const trans = nullTranslator.load('hyperpod_jlab');
  const tab = {
    opener: window as Window | null,
    close: jest.fn(),
    location: { replace: jest.fn() }
  };

  beforeEach(() => {
    tab.opener = window;
    jest.clearAllMocks();
    jest.spyOn(window, 'open').mockReturnValue(tab as unknown as Window);
  });

  afterEach(() => {
    jest.restoreAllMocks();
    Notification.dismiss();
  });

  it('opens a tab with the click, which cannot reach this one', async () => {
    const done = openMlflow(() => Promise.resolve('/there'), trans);
    expect(window.open).toHaveBeenCalledWith('', '_blank');
    await done;
    expect(tab.opener).toBeNull();
    expect(tab.location.replace).toHaveBeenCalledWith('/there');
  });

  it.each([
    'javascript:alert(1)',
    ' JavaScript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    'blob:x',
    'file:///etc',
    'vbscript:x'
  ])('opens no address that is not of a page: %j', async address => {
    await openMlflow(() => Promise.resolve(address), trans);
    expect(tab.location.replace).not.toHaveBeenCalled();
    expect(tab.close).toHaveBeenCalled();
    const [told] = Notification.manager.notifications;
    expect(told.message).toContain('not the address of a page');
  });

  it.each(['https://mlflow.example/#/x', 'http://a/b', '//a/b'])(
    'opens the address of a page: %s',
    async address => {
      await openMlflow(() => Promise.resolve(address), trans);
      expect(tab.location.replace).toHaveBeenCalledWith(address);
    }
  );

  it('closes the tab and says why when there is no link', async () => {
    const why = () => Promise.reject(new Error('no server'));
    await openMlflow(why, trans);
    expect(tab.close).toHaveBeenCalled();
    const [told] = Notification.manager.notifications;
    expect(told.message).toBe('Cannot open MLflow. no server');
  });

  it('says that the browser blocked the tab', async () => {
    jest.spyOn(window, 'open').mockReturnValue(null);
    const ask = jest.fn();
    await openMlflow(ask, trans);
    expect(ask).not.toHaveBeenCalled();
    const [told] = Notification.manager.notifications;
    expect(told.message).toContain('blocked the new tab');
  });
});
