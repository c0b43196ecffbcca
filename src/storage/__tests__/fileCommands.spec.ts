import { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, Dialog, Notification } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IHyperPod } from '../../tokens';
import { FileAction, IFileClient } from '../fileClient';
import { copyPath, IFileTools, showFileStates } from '../fileCommands';
import { IPaths, IStoredFile } from '../types';

const PATHS = {
  here: '/mnt/fsx/a',
  studio: true,
  clusters: [
    { cluster: 'local', side: 'here', here: '/mnt/fsx/a', there: '/mnt/fsx/a' },
    { cluster: 'train', side: 'Slurm node', there: '/fsx/alice/a' },
    { cluster: 'eks', side: 'pod', there: null, reason: 'no storage' }
  ]
};

class Files implements IFileClient {
  found: readonly IStoredFile[] | ApiError = [];
  asked: [FileAction, readonly string[]][] = [];

  link(): Promise<never> {
    return Promise.reject(new Error('not asked for here'));
  }

  paths(): Promise<IPaths> {
    return Promise.resolve(answerOf('StoragePaths', PATHS));
  }

  states(): Promise<readonly IStoredFile[]> {
    return this.found instanceof ApiError
      ? Promise.reject(this.found)
      : Promise.resolve(this.found);
  }

  act(
    action: FileAction,
    paths: readonly string[]
  ): Promise<readonly IStoredFile[]> {
    this.asked.push([action, paths]);
    const files = paths.map(path => ({ path, done: 'asked' }));
    return Promise.resolve(answerOf('StoredFiles', { files }).files);
  }
}

function toolsOf(client: IFileClient): IFileTools {
  const hyperPod = { trans: nullTranslator.load('x') } as IHyperPod;
  const app = {} as JupyterFrontEnd;
  return { app, hyperPod, client, browsers: null };
}

function files(...states: (string | null)[]): readonly IStoredFile[] {
  return answerOf('StoredFiles', {
    files: states.map((state, index) => ({
      path: `file-${index}`,
      done: state === null ? 'refused' : 'seen',
      state,
      reason: state === null ? 'it is no file' : null
    }))
  }).files;
}

async function dialog(): Promise<HTMLElement> {
  await until(() => document.querySelector('.jp-Dialog') !== null);
  const found = document.querySelector<HTMLElement>('.jp-Dialog');
  if (found === null) {
    throw new Error('there is no dialog');
  }
  await until(() => (found.querySelector('tbody, select') ?? null) !== null);
  return found;
}

function buttons(within: HTMLElement): string[] {
  const all = within.querySelectorAll('.jp-Dialog-footer button');
  return [...all].map(button => button.textContent ?? '');
}

function press(within: HTMLElement, label: string): void {
  const all = within.querySelectorAll<HTMLElement>('.jp-Dialog-footer button');
  [...all].find(button => button.textContent === label)?.click();
}

/** The words of the newest notification. */
function lastSaid(): string | undefined {
  return Notification.manager.notifications[0]?.message;
}

describe('copyPath', () => {
  const copied = jest.spyOn(Clipboard, 'copyToSystem').mockImplementation();

  beforeEach(() => copied.mockClear());

  it('copies the path of a named cluster without a question', async () => {
    const done = await copyPath(toolsOf(new Files()), 'a', 'train');
    expect(done).toEqual({ cluster: 'train', path: '/fsx/alice/a' });
    expect(copied).toHaveBeenCalledWith('/fsx/alice/a');
  });

  it('asks which side is meant, and offers those that have a path', async () => {
    const done = copyPath(toolsOf(new Files()), 'a', null);
    const shown = await dialog();
    const options = [...shown.querySelectorAll('option')].map(one => one.value);
    expect(options).toEqual([
      'Studio: /mnt/fsx/a',
      'nodes of train: /fsx/alice/a'
    ]);
    press(shown, 'Copy');
    expect(await done).toEqual({ cluster: 'train', path: '/fsx/alice/a' });
  });

  it('copies nothing for a cluster that has none, and says why', async () => {
    expect(await copyPath(toolsOf(new Files()), 'a', 'eks')).toBeNull();
    expect(copied).not.toHaveBeenCalled();
    expect(lastSaid()).toBe('eks has no separate path\nno storage');
  });

  it('copies nothing of what no cluster sees, and says why', async () => {
    const client = new Files();
    const reason = '/home/a does not lie on the storage partition';
    const off = { there: null, reason };
    client.paths = () =>
      Promise.resolve(
        answerOf('StoragePaths', {
          here: '/home/a',
          studio: false,
          clusters: [
            { cluster: 'local', side: 'here', there: '/home/a' },
            { cluster: 'train', side: 'Slurm node', ...off },
            { cluster: 'other', side: 'Slurm node', ...off }
          ]
        })
      );
    expect(await copyPath(toolsOf(client), 'a', null)).toBeNull();
    expect(copied).not.toHaveBeenCalled();
    expect(lastSaid()).toBe(
      `/home/a is not available on any cluster\n${reason}`
    );
  });

  it('copies the path here where there is no other machine', async () => {
    const client = new Files();
    const clusters = [{ cluster: 'local', side: 'here', there: '/home/a' }];
    client.paths = () =>
      Promise.resolve(
        answerOf('StoragePaths', { here: '/home/a', studio: false, clusters })
      );
    await copyPath(toolsOf(client), 'a', null);
    expect(copied).toHaveBeenCalledWith('/home/a');
  });
});

describe('showFileStates', () => {
  afterEach(() => Dialog.flush());

  it('offers what fits, and does it to the files that it fits', async () => {
    const client = new Files();
    client.found = files('released', 'local', null, 'released');
    const done = showFileStates(toolsOf(client), ['file-0']);
    const shown = await dialog();
    expect(shown.textContent).toContain('in S3 only');
    expect(shown.textContent).toContain('it is no file');
    expect(buttons(shown)).toEqual(['Close', 'Restore from S3']);
    press(shown, 'Restore from S3');
    await until(() => client.asked.length > 0);
    expect(client.asked).toEqual([['hydrate', ['file-0', 'file-3']]]);
    await until(() =>
      (document.querySelector('.jp-Dialog')?.textContent ?? '').includes(
        'requested'
      )
    );
    press(await dialog(), 'Close');
    expect(await done).toMatchObject({ action: 'hydrate' });
  });

  it('offers nothing where nothing here knows states', async () => {
    const client = new Files();
    client.found = new ApiError(
      {
        code: 'no_lfs',
        message: 'there is no lfs',
        hint: null,
        detail: {}
      },
      422
    );
    const done = showFileStates(toolsOf(client), ['a', 'b']);
    const shown = await dialog();
    expect(shown.textContent).toContain('there is no lfs');
    expect(buttons(shown)).toEqual(['Close']);
    press(shown, 'Close');
    expect(await done).toMatchObject({ action: null });
    expect(client.asked).toEqual([]);
  });
});
