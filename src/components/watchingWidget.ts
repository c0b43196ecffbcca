import { IDisposable } from '@lumino/disposable';
import { Message } from '@lumino/messaging';
import { ISignal } from '@lumino/signaling';

import { SignalWidget } from './signalWidget';

/**
 * A widget whose data is polled while it is visible.
 */
export interface IWatched extends IDisposable {
  readonly changed: ISignal<unknown, unknown>;
  /** Somebody looks at it. */
  start(): void;
  /** Nobody looks at it for now. */
  stop(): void;
}

/**
 * A widget that shows what it watches, and owns it. Nothing is asked for while it is hidden.
 */
export abstract class WatchingWidget<W extends IWatched> extends SignalWidget {
  constructor(watched: W) {
    super(watched.changed);
    this.watched = watched;
  }

  /** What is shown. */
  protected readonly watched: W;

  override dispose(): void {
    if (!this.isDisposed) {
      this.watched.dispose();
      super.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (this.isVisible) {
      this.watched.start();
    }
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.watched.start();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.watched.stop();
  }

  protected override onBeforeDetach(msg: Message): void {
    this.watched.stop();
    super.onBeforeDetach(msg);
  }
}

/**
 * Such a widget as a page of the main area: it takes the focus, and screen readers know it by its label.
 */
export abstract class WatchingPage<
  W extends IWatched
> extends WatchingWidget<W> {
  constructor(watched: W, label: string) {
    super(watched);
    this.addClass('jp-HyperPod-ClusterPage');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', label);
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }
}
