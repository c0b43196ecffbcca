import { URLExt } from '@jupyterlab/coreutils';

import {
  HyperPodClient,
  listOf,
  numberOf,
  recordOf,
  textOf,
  textOrNull
} from '../api';
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

/**
 * A cell as it stood in the notebook when it was sent.
 */
export interface ISentCell {
  readonly number: number;
  readonly id: string | null;
  readonly checksum: string | null;
  readonly text: string;
}

/**
 * Everything that is asked of the server on the cells of notebooks; tests give it one of their own.
 */
export interface ICellsClient {
  /** The runs of a notebook, by its path under the server's root. */
  ofNotebook(path: string): Promise<INotebookRuns>;
  /** The cells that went with a run. */
  ofRun(runId: string): Promise<readonly ISentCell[]>;
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
      query: { notebook: path }
    });
  }

  ofRun(runId: string): Promise<readonly ISentCell[]> {
    const path = URLExt.join('runs', encodeURIComponent(runId), 'cells');
    return this._client.get(path, value =>
      listOf(recordOf(value, 'cells'), 'cells', decodeSentCell)
    );
  }

  private readonly _client: HyperPodClient;
}

function decodeNotebookRuns(value: unknown): INotebookRuns {
  const from = recordOf(value, 'cells');
  return {
    runs: listOf(from, 'runs', decodeRun),
    cells: listOf(from, 'cells', item => {
      const cell = recordOf(item, 'cell');
      return {
        id: textOf(cell, 'id'),
        checksum: textOf(cell, 'checksum'),
        runId: textOf(cell, 'run_id')
      };
    })
  };
}

function decodeSentCell(value: unknown): ISentCell {
  const from = recordOf(value, 'cell');
  return {
    number: numberOf(from, 'number'),
    id: textOrNull(from, 'id'),
    checksum: textOrNull(from, 'checksum'),
    text: textOf(from, 'text')
  };
}
