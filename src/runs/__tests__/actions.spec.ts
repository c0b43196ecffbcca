import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IHyperPod } from '../../tokens';
import { cancelAfterQuestion, runAgain } from '../actions';
import { RunsModel } from '../model';
import { FakeRunClient, run } from './fakes';

describe('Actions that fail', () => {
  const trans = nullTranslator.load('hyperpod_jlab');
  let runs: RunsModel;
  let hyperPod: IHyperPod;

  function told(): Notification.INotification[] {
    return Notification.manager.notifications;
  }

  beforeEach(() => {
    runs = new RunsModel({ client: new FakeRunClient() });
    hyperPod = { runs, trans } as unknown as IHyperPod;
  });

  afterEach(() => {
    runs.dispose();
    Notification.dismiss();
  });

  it('says for a while that a run could not be cancelled', async () => {
    const done = cancelAfterQuestion(hyperPod, run(1));
    await until(() => document.querySelector('.jp-mod-accept') !== null);
    document.querySelector<HTMLElement>('.jp-mod-accept')?.click();
    await done;
    expect(told()[0].message).toContain('run 1 could not be cancelled. no run');
    expect(told()[0].options.autoClose).toBeGreaterThan(0);
    Dialog.flush();
  });

  it('says why a run can’t be run again', async () => {
    const error = ApiError.local('not_found', 'There is no run 1.', 404);
    const execute = () => Promise.reject(error);
    const app = { commands: { execute } } as unknown as JupyterFrontEnd;
    await runAgain(app, hyperPod, run(1));
    expect(told()[0].message).toBe(
      'run 1 can’t be run again. There is no run 1.'
    );
  });
});
