import { ISessionContext } from '@jupyterlab/apputils';
import { KernelSpec } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { KernelMagic } from '../kernelMagic';

describe('KernelMagic', () => {
  let asked: string[];
  let isWanted: boolean;
  let magic: KernelMagic;
  const kernelChanged = new Signal<object, void>({});
  const statusChanged = new Signal<object, string>({});
  let session: { session: { kernel: object } | null };

  function kernelOf(name: string) {
    return {
      name,
      isDisposed: false,
      requestExecute: (content: {
        silent: boolean;
        store_history: boolean;
      }) => {
        asked.push(`${name} ${content.silent} ${content.store_history}`);
        return { done: Promise.reject(new Error('Canceled')) };
      }
    };
  }

  beforeEach(() => {
    asked = [];
    isWanted = true;
    session = { session: null };
    const context = { kernelChanged, statusChanged };
    Object.defineProperty(context, 'session', { get: () => session.session });
    magic = new KernelMagic({
      session: context as unknown as ISessionContext,
      specs: () =>
        ({
          kernelspecs: { py: { language: 'python' }, r: { language: 'R' } }
        }) as unknown as KernelSpec.ISpecModels,
      isWanted: () => isWanted
    });
  });

  afterEach(() => magic.dispose());

  function start(name: string): void {
    session.session = { kernel: kernelOf(name) };
    kernelChanged.emit();
  }

  it('is for Python kernels, unseen and without a count', () => {
    start('r');
    start('unknown');
    expect(asked).toEqual([]);
    start('py');
    expect(asked).toEqual(['py true false']);
  });

  it('comes again after a restart, once the old requests are forgotten', async () => {
    start('py');
    Object.assign(statusChanged.sender, session);
    statusChanged.emit('busy');
    statusChanged.emit('restarting');
    expect(asked).toHaveLength(1);
    await Promise.resolve();
    expect(asked).toHaveLength(2);
  });

  it('is left out where it is not wanted', () => {
    isWanted = false;
    start('py');
    expect(asked).toEqual([]);
  });
});
