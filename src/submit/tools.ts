import { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

import type { ICellsClient } from '../notebook/client';
import { selectedIds, viewOf } from '../notebook/source';
import { IHyperPod } from '../tokens';
import type { ISubmitClient } from './client';
import type { Drafts } from './drafts';
import type { ISubmitMemory } from './memory';
import type { RunIds } from './runId';
import { fileSource, IEditor, ISubmitSource, sourceOfFile } from './source';

/**
 * What the commands work with; parts that an application lacks are null.
 */
export interface ITools {
  readonly app: JupyterFrontEnd;
  readonly hyperPod: IHyperPod;
  readonly client: ISubmitClient;
  readonly cells: ICellsClient;
  readonly memory: ISubmitMemory;
  readonly runIds: RunIds;
  readonly drafts: Drafts;
  /** Milliseconds before each further try to send, where not the usual ones. */
  readonly pauses?: readonly number[];
  readonly notebooks: INotebookTracker | null;
  readonly browsers: IFileBrowserFactory | null;
  readonly documents: IDocumentManager | null;
}

/** The open notebook that is in use. */
export function currentNotebook(tools: ITools): NotebookPanel | null {
  return tools.notebooks?.currentWidget ?? null;
}

/** The file that is selected in the file browser, if it can be run. */
export function selectedFile(tools: ITools): string | null {
  const browser = tools.browsers?.tracker.currentWidget;
  const selected = [...(browser?.selectedItems() ?? [])];
  const path = selected.length === 1 ? selected[0].path : null;
  return path !== null && sourceOfFile(path) ? path : null;
}

/** The folder that the file browser shows, under the server's root. */
export function currentFolder(tools: ITools): string {
  const path = tools.browsers?.tracker.currentWidget?.model.path ?? '';
  return path === '' ? '' : localPath(tools, path);
}

/** An open notebook as a source: its selected cells, or all of it. */
export function notebookSource(
  tools: ITools,
  panel: NotebookPanel,
  cellIds: readonly string[] | null
): ISubmitSource {
  const path = localPath(tools, panel.context.path);
  return fileSource(path, sourceOfFile(path) ?? {}, {
    cellIds,
    view: () => viewOf(panel)
  });
}

/** The selected cells of an open notebook as a source. */
export function cellsSource(
  tools: ITools,
  panel: NotebookPanel
): ISubmitSource {
  return notebookSource(tools, panel, selectedIds(panel));
}

/**
 * A file as a source: as it is on the screen where it is an open notebook.
 *
 * @throws when nothing can run such a file
 */
export async function pathSource(
  tools: ITools,
  path: string
): Promise<ISubmitSource> {
  const { notebooks } = tools;
  const local = localPath(tools, path);
  const panel = notebooks?.find(
    one => localPath(tools, one.context.path) === local
  );
  if (panel) {
    // One that is being opened has no cells yet.
    await panel.context.ready;
    return notebookSource(tools, panel, null);
  }
  const spec = sourceOfFile(local);
  if (!spec) {
    const { trans } = tools.hyperPod;
    throw new Error(
      trans.__(
        'Cannot run %1. Choose a notebook, a Python file, an sbatch script or a manifest.',
        local
      )
    );
  }
  return fileSource(local, spec, { editor: editorOf(tools, path) });
}

/** A path without the drive that an application may put before it. */
function localPath(tools: ITools, path: string): string {
  return tools.app.serviceManager.contents.localPath(path);
}

function editorOf(tools: ITools, path: string): IEditor | null {
  const { documents } = tools;
  const widget = documents?.findWidget(path);
  const context = widget && documents?.contextForWidget(widget);
  return context
    ? { isDirty: () => context.model.dirty, save: () => context.save() }
    : null;
}
