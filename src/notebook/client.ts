import { URLExt } from '@jupyterlab/coreutils';

import {
  HyperPodClient,
  listOf,
  numberOf,
  Query,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';
import { decodeRun, IRun } from '../runs/types';

/**
 * The newest run that has a cell, and the checksum of the cell's source as it was sent.
 */
export interface IRunOfCell {
  readonly id: string;
  readonly checksum: string;
  readonly runId: string;
}

/**
 * What the server knows of a notebook: its newest runs, newest first, and the run of each cell.
 */
export interface INotebookRuns {
  readonly runs: readonly IRun[];
  readonly cells: readonly IRunOfCell[];
}

/** A cell as it stood in the notebook when it was sent; its text is null when it can't be read any more. */
export type ISentCell = wire.ISentCellText;

/**
 * What of a notebook went with a run.
 */
export interface ISentNotebook {
  /** The notebook's path under the server's root; null where it lies elsewhere. */
  readonly path: string | null;
  readonly cells: readonly ISentCell[];
}

/**
 * Everything that is asked of the server on the cells of notebooks; tests give it one of their own.
 */
export interface ICellsClient {
  /** The runs of a notebook, by its path under the server's root. */
  ofNotebook(path: string): Promise<INotebookRuns>;
  /** The cells that went with a run, and where its notebook is. */
  ofRun(runId: string): Promise<ISentNotebook>;
}

/**
 * The client of the server extension's routes on cells.
 */
export class CellsClient implements ICellsClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  ofNotebook(path: string): Promise<INotebookRuns> {
    return this._client.get('cells', decodeNotebookRuns, {
      query: { notebook: path } satisfies Query<wire.ICellsQuery>
    });
  }

  ofRun(runId: string): Promise<ISentNotebook> {
    const path = URLExt.join('runs', encodeURIComponent(runId), 'cells');
    return this._client.get(path, decodeSentNotebook);
  }

  private readonly _client: HyperPodClient;
}

function decodeNotebookRuns(value: unknown): INotebookRuns {
  const from = recordOf<wire.INotebookCells>(value, 'cells');
  return {
    runs: listOf(from, 'runs', decodeRun),
    cells: listOf(from, 'cells', item => {
      const cell = recordOf<wire.IRunOfCell>(item, 'cell');
      return {
        id: textOf(cell, 'id'),
        checksum: textOf(cell, 'checksum'),
        runId: textOf(cell, 'run_id')
      };
    })
  };
}

function decodeSentNotebook(value: unknown): ISentNotebook {
  const from = recordOf<wire.ISentCells>(value, 'cells');
  return {
    path: textOrNull(from, 'path'),
    cells: listOf(from, 'cells', decodeSentCell)
  };
}

function decodeSentCell(value: unknown): ISentCell {
  const from = recordOf<wire.ISentCellText>(value, 'cell');
  return {
    number: numberOf(from, 'number'),
    id: textOrNull(from, 'id'),
    checksum: textOrNull(from, 'checksum'),
    text: textOrNull(from, 'text')
  };
}
