import type { NotebookPanel } from '@jupyterlab/notebook';

import { ICodeCell, INotebookView, Json, JsonObject } from '../submit';

/**
 * A notebook as it is on the screen, what is not saved included. Outputs stay here: no run needs them.
 */
export function viewOf(panel: NotebookPanel): INotebookView {
  const shared = panel.context.model.sharedModel;
  const code: ICodeCell[] = [];
  const cells = shared.cells.map((cell): JsonObject => {
    const { cell_type: kind, id } = cell;
    const text = cell.getSource();
    if (kind !== 'code') {
      return { cell_type: kind, id, metadata: {}, source: text };
    }
    code.push({ id, number: code.length + 1, text });
    const tags: unknown = cell.getMetadata('tags');
    return {
      cell_type: kind,
      id,
      metadata: Array.isArray(tags) ? { tags: tags as readonly Json[] } : {},
      source: text,
      outputs: [],
      execution_count: null
    };
  });
  return {
    document: {
      nbformat: shared.nbformat,
      nbformat_minor: shared.nbformat_minor,
      metadata: shared.getMetadata() as unknown as JsonObject,
      cells
    },
    cells: code
  };
}

/** The ids of the selected code cells, or of all that is selected when none of it is code. */
export function selectedIds(panel: NotebookPanel): readonly string[] {
  const cells = panel.content.selectedCells.map(cell => cell.model);
  const code = cells.filter(cell => cell.type === 'code');
  return (code.length > 0 ? code : cells).map(cell => cell.id);
}
