import { URLExt } from '@jupyterlab/coreutils';

import {
  HyperPodClient,
  listOf,
  numberOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import { decodeRun, IRun } from './types';

/** What can be done to a run that is there. */
export type RunAction = 'cancel' | 'hold' | 'release' | 'requeue';

/**
 * Some runs, newest first, and where the list goes on.
 */
export interface IRunPage {
  readonly runs: readonly IRun[];
  readonly next: string | null;
}

/**
 * Which runs are wanted.
 */
export interface IRunQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly cluster?: string;
}

/**
 * A text with its name: the script or manifest, or a file.
 */
export interface INamedText {
  readonly name: string;
  readonly text: string;
}

/**
 * A file that went with a run.
 */
export interface ICodeFile {
  readonly path: string;
  readonly size: number | null;
}

/**
 * Everything that is asked of the server on runs; tests give it one of their own.
 */
export interface IRunClient {
  list(query: IRunQuery): Promise<IRunPage>;
  get(runId: string): Promise<IRun>;
  act(runId: string, action: RunAction): Promise<IRun>;
  children(runId: string): Promise<readonly IRun[]>;
  spec(runId: string): Promise<Readonly<Record<string, unknown>>>;
  script(runId: string): Promise<INamedText>;
  code(runId: string): Promise<readonly ICodeFile[]>;
  codeFile(runId: string, path: string): Promise<INamedText>;
}

/**
 * The client of the server extension's run routes.
 */
export class RunClient implements IRunClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  list(query: IRunQuery): Promise<IRunPage> {
    return this._client.get('runs', decodeRuns, {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        cluster: query.cluster
      }
    });
  }

  get(runId: string): Promise<IRun> {
    return this._client.get(runPath(runId), decodeRun);
  }

  act(runId: string, action: RunAction): Promise<IRun> {
    return this._client.post(runPath(runId, action), {}, decodeRun);
  }

  children(runId: string): Promise<readonly IRun[]> {
    return this._client.get(runPath(runId, 'children'), value =>
      listOf(recordOf(value, 'children'), 'runs', decodeRun)
    );
  }

  spec(runId: string): Promise<Readonly<Record<string, unknown>>> {
    return this._client.get(runPath(runId, 'spec'), value =>
      recordOf(value, 'spec')
    );
  }

  script(runId: string): Promise<INamedText> {
    return this._client.get(runPath(runId, 'script'), decodeText);
  }

  code(runId: string): Promise<readonly ICodeFile[]> {
    return this._client.get(runPath(runId, 'code'), value =>
      listOf(recordOf(value, 'code'), 'files', decodeFile)
    );
  }

  codeFile(runId: string, path: string): Promise<INamedText> {
    const parts = path.split('/').map(encodeURIComponent);
    return this._client.get(runPath(runId, 'code', ...parts), decodeText);
  }

  private readonly _client: HyperPodClient;
}

function runPath(runId: string, ...rest: string[]): string {
  return URLExt.join('runs', encodeURIComponent(runId), ...rest);
}

function decodeRuns(value: unknown): IRunPage {
  const from = recordOf(value, 'runs');
  return {
    runs: listOf(from, 'runs', decodeRun),
    next: textOrNull(from, 'next')
  };
}

function decodeText(value: unknown): INamedText {
  const from = recordOf(value, 'text');
  const name = textOrNull(from, 'name') ?? textOrNull(from, 'path') ?? '';
  return { name, text: textOf(from, 'text') };
}

function decodeFile(value: unknown): ICodeFile {
  const from = recordOf(value, 'file');
  return { path: textOf(from, 'path'), size: numberOrNull(from, 'size') };
}
