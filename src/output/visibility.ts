import { IDisposable } from '@lumino/disposable';

/** A card that is scrolled out and back need not be loaded again. */
const PATIENCE_MS = 1000;

/**
 * Tells when an element comes into sight and when it has been out of it for a moment: scrolled away, in a hidden tab, or out of
 * the document.
 */
export class VisibilityWatch implements IDisposable {
  constructor(node: Element, onChange: (isSeen: boolean) => void) {
    this._onChange = onChange;
    this._observer = new IntersectionObserver(entries => {
      // The last one is how it is now.
      this._take(entries[entries.length - 1].isIntersecting);
    });
    this._observer.observe(node);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    clearTimeout(this._timer);
    this._observer.disconnect();
  }

  private _take(isSeen: boolean): void {
    clearTimeout(this._timer);
    if (isSeen === this._isSeen) {
      return;
    }
    if (isSeen) {
      this._tell(true);
    } else {
      this._timer = setTimeout(() => this._tell(false), PATIENCE_MS);
    }
  }

  private _tell(isSeen: boolean): void {
    this._isSeen = isSeen;
    this._onChange(isSeen);
  }

  private readonly _observer: IntersectionObserver;
  private readonly _onChange: (isSeen: boolean) => void;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _isSeen = false;
  private _isDisposed = false;
}
