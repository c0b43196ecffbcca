import type { ISessionContext } from '@jupyterlab/apputils';
import { Kernel, KernelSpec } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';

/**
 * Imports nothing of the package before the magic is used, and leaves no name behind. A kernel without IPython or without the package goes on
 * without the magic.
 */
const CODE = `try:
    if __import__("importlib.util").util.find_spec("hyperpod_jlab"):
        get_ipython().magics_manager.register_lazy("hyperpod", "hyperpod_jlab")
except Exception:
    pass
`;

/**
 * Gives a notebook's kernel the magic, whenever one starts: before any cell that is run, unseen, and without an execution count.
 */
export class KernelMagic implements IDisposable {
  constructor(private readonly _options: KernelMagic.IOptions) {
    const { session } = _options;
    session.kernelChanged.connect(this._onKernel, this);
    session.statusChanged.connect(this._onStatus, this);
    this._load(session.session?.kernel ?? null);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    const { session } = this._options;
    session.kernelChanged.disconnect(this._onKernel, this);
    session.statusChanged.disconnect(this._onStatus, this);
  }

  private _onKernel(): void {
    this._load(this._options.session.session?.kernel ?? null);
  }

  private _onStatus(session: ISessionContext, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting') {
      // The connection forgets what was asked of the old process first.
      queueMicrotask(() => this._load(session.session?.kernel ?? null));
    }
  }

  private _load(kernel: Kernel.IKernelConnection | null): void {
    const { isWanted, specs } = this._options;
    const language =
      kernel && specs()?.kernelspecs[kernel.name]?.language.toLowerCase();
    if (
      !kernel ||
      kernel.isDisposed ||
      this._isDisposed ||
      !isWanted() ||
      language !== 'python'
    ) {
      return;
    }
    const future = kernel.requestExecute({
      code: CODE,
      silent: true,
      store_history: false,
      allow_stdin: false
    });
    // The kernel may end before it answers.
    future.done.catch(() => undefined);
  }

  private _isDisposed = false;
}

export namespace KernelMagic {
  export interface IOptions {
    readonly session: ISessionContext;
    /** The kernels that can be started, as far as they are known. */
    readonly specs: () => KernelSpec.ISpecModels | null;
    readonly isWanted: () => boolean;
  }
}
