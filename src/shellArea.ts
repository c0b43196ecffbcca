import { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

/**
 * Put a page into the main area or, where that has room for one document only (a notebook in Notebook 7), beside it.
 */
export function addPageToShell(app: JupyterFrontEnd, page: Widget): void {
  app.shell.add(page, 'main');
  if (page.parent === null) {
    app.shell.add(page, 'right');
  }
}
