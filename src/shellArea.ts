import { JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { hyperPodIcon } from './icons';

/**
 * Show the page with an id: the one that is open, or else a new one.
 *
 * @param tracker - knows the pages that are open, and the new one from then on
 * @param make - makes the page, with the label of its tab
 * @param place - the page beside which a new one comes; default: where the application puts it
 */
export async function openPage<P extends Widget>(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<P>,
  id: string,
  make: () => Promise<P>,
  place: Widget | null = null
): Promise<P> {
  const find = () => tracker.find(page => page.id === id);
  let page = find();
  if (!page) {
    const made = await make();
    // While its code was loading the user may have opened it as well.
    page = find();
    if (page) {
      made.dispose();
    } else {
      page = made;
      page.id = id;
      page.title.icon ??= hyperPodIcon;
      page.title.closable = true;
      addPageToShell(app, page, place);
      await tracker.add(page);
    }
  }
  app.shell.activateById(id);
  return page;
}

/** Put a page into the main area or, where that has room for one document only (a notebook in Notebook 7), beside it. */
function addPageToShell(
  app: JupyterFrontEnd,
  page: Widget,
  place: Widget | null
): void {
  app.shell.add(page, 'main', place ? { ref: place.id } : undefined);
  if (page.parent === null) {
    app.shell.add(page, 'right');
  }
}
