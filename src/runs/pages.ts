import { JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';

import { openPage } from '../shellArea';
import type { RunPage } from './page';

/** Attribute of a preview's tab, for the style. */
const PREVIEW = 'hyperpod-preview';

/**
 * The open pages of runs. One of them may be a preview, whose place the next one takes until it is pinned.
 */
export class RunPages {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _tracker: WidgetTracker<RunPage>
  ) {
    // A tab's node belongs to the shell, which tells nothing of a double click.
    document.addEventListener('dblclick', event => this._onDoubleClick(event));
  }

  /** Whether a page is the preview. */
  isPreview(page: RunPage): boolean {
    return page === this._preview;
  }

  /**
   * Show a run's page. A new one is pinned unless it is to be a preview; a preview stays one until it is to be pinned.
   *
   * @param make - makes a new page
   */
  open(
    runId: string,
    isPreview: boolean,
    make: () => Promise<RunPage>
  ): Promise<void> {
    // One after the other: a double click opens first, and then pins.
    const done = this._last.then(() => this._open(runId, isPreview, make));
    this._last = done.catch(() => undefined);
    return done;
  }

  /** Keep a page. */
  pin(page: RunPage): void {
    if (page === this._preview) {
      this._preview = null;
      page.title.dataset = { ...page.title.dataset, [PREVIEW]: 'false' };
      void this._tracker.save(page);
    }
  }

  private async _open(
    runId: string,
    isPreview: boolean,
    make: () => Promise<RunPage>
  ): Promise<void> {
    const old = this._preview;
    const isOld = old !== null && !old.isDisposed;
    const id = runPageId(runId);
    let isNew = false;
    const place = isPreview && isOld ? old : null;
    const making = async () => {
      isNew = true;
      return make();
    };
    const page = await openPage(this._app, this._tracker, id, making, place);
    if (!isPreview) {
      this.pin(page);
    } else if (isNew) {
      this._makePreview(page);
      if (isOld && old === place) {
        old.dispose();
      }
    }
  }

  private _makePreview(page: RunPage): void {
    this._preview = page;
    page.title.dataset = { ...page.title.dataset, [PREVIEW]: 'true' };
    page.used.connect(() => this.pin(page));
    page.disposed.connect(() => {
      if (this._preview === page) {
        this._preview = null;
      }
    });
    void this._tracker.save(page);
  }

  private _onDoubleClick({ target }: MouseEvent): void {
    const tab =
      target instanceof Element
        ? target.closest<HTMLElement>('.lm-TabBar-tab')
        : null;
    if (this._preview && tab?.dataset.id === this._preview.id) {
      this.pin(this._preview);
    }
  }

  private _preview: RunPage | null = null;
  private _last: Promise<void> = Promise.resolve();
}

/** The id of a run's page. */
export function runPageId(runId: string): string {
  return `hyperpod-run-${runId}`;
}

/** Whether the user sees a run's page. */
export function isRunShown({ shell }: JupyterFrontEnd, runId: string): boolean {
  const id = runPageId(runId);
  const pages = [...shell.widgets('main'), ...shell.widgets('right')];
  return (
    !document.hidden && pages.some(page => page.id === id && page.isVisible)
  );
}
