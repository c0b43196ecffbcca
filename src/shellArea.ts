import { JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { hyperPodIcon } from './icons';

/**
 * Show the page with an id: the one that is open, or else a new one.
 *
 * @param tracker - knows the pages that are open, and the new one from then on
 * @param make - makes the page, with the label of its tab
 */
export async function openPage<P extends Widget>(
  app: JupyterFrontEnd,
  tracker: WidgetTracker<P>,
  id: string,
  make: () => Promise<P>
): Promise<void> {
  const isOpen = () => tracker.find(page => page.id === id) !== undefined;
  if (!isOpen()) {
    const page = await make();
    // While its code was on its way somebody may have opened it as well.
    if (isOpen()) {
      page.dispose();
    } else {
      page.id = id;
      page.title.icon = hyperPodIcon;
      page.title.closable = true;
      addPageToShell(app, page);
      await tracker.add(page);
    }
  }
  app.shell.activateById(id);
}

/** Put a page into the main area or, where that has room for one document only (a notebook in Notebook 7), beside it. */
function addPageToShell(app: JupyterFrontEnd, page: Widget): void {
  app.shell.add(page, 'main');
  if (page.parent === null) {
    app.shell.add(page, 'right');
  }
}
