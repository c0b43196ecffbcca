import { URLExt } from '@jupyterlab/coreutils';

import type { ActionKind, IChange } from '../actions/kinds';
import {
  HyperPodClient,
  listOf,
  numberOrNull,
  Query,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';
import { decodeRunMetrics, IRunMetrics } from '../metrics/client';
import { decodeAccess, IRunAccess, portPath } from './access';
import { decodeRun, IRun } from './types';
import { decodeUsage, IUsage } from './usage';
import { decodeWait, IWaitReason } from './wait';

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

/** A text with its name: the script or manifest, or a file. */
export type INamedText = wire.IRenderedText;

/** A file that went with a run. */
export type ICodeFile = wire.ICodeFile;

/**
 * Everything that is asked of the server on runs; tests give it one of their own.
 */
export interface IRunClient {
  list(query: IRunQuery): Promise<IRunPage>;
  get(runId: string): Promise<IRun>;
  act(runId: string, action: ActionKind, change?: IChange): Promise<IRun>;
  children(runId: string): Promise<readonly IRun[]>;
  why(runId: string): Promise<IWaitReason>;
  usage(runId: string): Promise<IUsage | null>;
  /** What AWS measured on its nodes. */
  metrics(runId: string): Promise<IRunMetrics>;
  /** What of its nodes can be reached now. */
  access(runId: string): Promise<IRunAccess>;
  /** Opens a port of a node; gives the address, which can be used once and soon. */
  openPort(runId: string, nodeRank: number, port: number): Promise<string>;
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
      } satisfies Query<wire.IRunsQuery>
    });
  }

  get(runId: string): Promise<IRun> {
    return this._client.get(runPath(runId), decodeRun);
  }

  act(runId: string, action: ActionKind, change?: IChange): Promise<IRun> {
    const body: wire.IChangeBody = change
      ? { time_limit: change.timeLimit, queue: change.queue }
      : {};
    return this._client.post(runPath(runId, action), body, decodeRun);
  }

  children(runId: string): Promise<readonly IRun[]> {
    return this._client.get(runPath(runId, 'children'), value =>
      listOf(recordOf<wire.IChildren>(value, 'children'), 'runs', decodeRun)
    );
  }

  why(runId: string): Promise<IWaitReason> {
    return this._client.get(runPath(runId, 'why'), decodeWait);
  }

  usage(runId: string): Promise<IUsage | null> {
    return this._client.get(runPath(runId, 'usage'), decodeUsage);
  }

  metrics(runId: string): Promise<IRunMetrics> {
    return this._client.get(runPath(runId, 'metrics'), decodeRunMetrics);
  }

  access(runId: string): Promise<IRunAccess> {
    return this._client.get(runPath(runId, 'access'), decodeAccess);
  }

  async openPort(
    runId: string,
    nodeRank: number,
    port: number
  ): Promise<string> {
    const path = runPath(runId, 'ports', portPath(nodeRank, port), 'open');
    const opened = await this._client.post(path, {}, decodeOpenedPort);
    return this._client.link(opened.path, { ticket: opened.ticket });
  }

  spec(runId: string): Promise<Readonly<Record<string, unknown>>> {
    return this._client.get(runPath(runId, 'spec'), value =>
      recordOf(value, 'spec')
    );
  }

  script(runId: string): Promise<INamedText> {
    return this._client.get(runPath(runId, 'script'), decodeScript);
  }

  code(runId: string): Promise<readonly ICodeFile[]> {
    return this._client.get(runPath(runId, 'code'), value =>
      listOf(recordOf<wire.ICode>(value, 'code'), 'files', decodeFile)
    );
  }

  codeFile(runId: string, path: string): Promise<INamedText> {
    const parts = path.split('/').map(encodeURIComponent);
    return this._client.get(runPath(runId, 'code', ...parts), decodeCode);
  }

  private readonly _client: HyperPodClient;
}

function runPath(runId: string, ...rest: string[]): string {
  return URLExt.join('runs', encodeURIComponent(runId), ...rest);
}

function decodeRuns(value: unknown): IRunPage {
  const from = recordOf<wire.IRunList>(value, 'runs');
  return {
    runs: listOf(from, 'runs', decodeRun),
    next: textOrNull(from, 'next')
  };
}

function decodeOpenedPort(value: unknown): { path: string; ticket: string } {
  const from = recordOf<wire.IOpenedPort>(value, 'opened port');
  return { path: textOf(from, 'path'), ticket: textOf(from, 'ticket') };
}

function decodeScript(value: unknown): INamedText {
  const from = recordOf<wire.IRenderedText>(value, 'script');
  return { name: textOf(from, 'name'), text: textOf(from, 'text') };
}

function decodeCode(value: unknown): INamedText {
  const from = recordOf<wire.ICodeText>(value, 'text');
  return { name: textOf(from, 'path'), text: textOf(from, 'text') };
}

function decodeFile(value: unknown): ICodeFile {
  const from = recordOf<wire.ICodeFile>(value, 'file');
  return { path: textOf(from, 'path'), size: numberOrNull(from, 'size') };
}
