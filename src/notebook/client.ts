import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';

/** The newest run that has a cell, and the checksum of the cell's source as it was sent. */
export type IRunOfCell = Schema<'RunOfCell'>;

/** What the server knows of a notebook: its newest runs, newest first, and the run of each cell. */
export type INotebookRuns = Schema<'NotebookCells'>;

/** A cell as it stood in the notebook when it was sent; its text is null when it can't be read any more. */
export type ISentCell = Schema<'SentCellText'>;

/** What of a notebook went with a run; its path under the server's root is null where it lies elsewhere. */
export type ISentNotebook = Schema<'SentCells'>;

/**
 * The client of the server extension's routes on cells.
 */
export class CellsClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** The runs of a notebook, by its path under the server's root. */
  ofNotebook(path: string): Promise<INotebookRuns> {
    return this._client.get('cells', {
      query: { notebook: path } satisfies Schema<'CellsQuery'>
    });
  }

  /** The cells that went with a run, and where its notebook is. */
  ofRun(runId: string): Promise<ISentNotebook> {
    const path = URLExt.join('runs', encodeURIComponent(runId), 'cells');
    return this._client.get(path);
  }
}

/** What the rest needs of it; tests give one of their own. */
export type ICellsClient = Pick<CellsClient, keyof CellsClient>;
