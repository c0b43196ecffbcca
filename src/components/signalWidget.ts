import { ReactWidget } from '@jupyterlab/ui-components';
import { ISignal } from '@lumino/signaling';

/**
 * A widget that renders whenever a model emits its signal.
 *
 * Unlike a component that listens once it is mounted it misses no change of a model that is faster than that.
 */
export abstract class SignalWidget extends ReactWidget {
  constructor(changed: ISignal<unknown, unknown>) {
    super();
    this._signal = changed;
    changed.connect(this._onSignal, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._signal.disconnect(this._onSignal, this);
      super.dispose();
    }
  }

  private _onSignal(): void {
    this.update();
  }

  private readonly _signal: ISignal<unknown, unknown>;
}
