import { URLExt } from '@jupyterlab/coreutils';

import type { ActionKind, IChange } from '../actions/kinds';
import { HyperPodClient, Schema } from '../api';
import { IRunAccess } from './access';
import { IRun } from './types';

/** Some runs, newest first, and where the list goes on. */
export type IRunPage = Schema<'RunList'>;

/**
 * Which runs are wanted.
 */
export interface IRunQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly cluster?: string;
}

/** A text with its name: the script or manifest, or a file. */
export type INamedText = Schema<'RenderedText'>;

/** A file that went with a run. */
export type ICodeFile = Schema<'CodeFile'>;

/** A notebook with the outputs of one rank. */
export type IExecutedNotebook = Schema<'ExecutedNotebook'>;

/** Why a run waits. */
export type IWaitReason = Schema<'WaitReason'>;

/** What a run used, in all its attempts together. */
export type IUsage = Schema<'Usage'>;

/** A run's limits, the phases of its attempts and the state of each rank. */
export type IRunOverview = Schema<'RunOverview'>;

/** One rank of the newest attempt. */
export type IRankStatus = Schema<'RankStatus'>;

/** What one attempt's ranks, nodes and GPUs used over time. */
export type IRunResources = Schema<'RunResources'>;

/** The course of one measure. */
export type IResourceSeries = Schema<'ResourceSeries'>;

/**
 * The client of the server extension's run routes.
 */
export class RunClient {
  constructor(private readonly _client: HyperPodClient) {}

  list(query: IRunQuery): Promise<IRunPage> {
    return this._client.get('runs', {
      query: { ...query } satisfies Schema<'RunsQuery'>
    });
  }

  get(runId: string): Promise<IRun> {
    return this._client.get(runPath(runId));
  }

  act(runId: string, action: ActionKind, change?: IChange): Promise<IRun> {
    const body: Schema<'ChangeBody'> = change ?? {};
    return this._client.post(runPath(runId, action), body);
  }

  /** Remove an ended run's files. */
  async delete(runId: string): Promise<void> {
    const path = runPath(runId, 'delete');
    await this._client.post<Schema<'DeletedRun'>>(path, {});
  }

  async children(runId: string): Promise<readonly IRun[]> {
    const path = runPath(runId, 'children');
    return (await this._client.get<Schema<'Children'>>(path)).runs;
  }

  why(runId: string): Promise<IWaitReason> {
    return this._client.get(runPath(runId, 'why'));
  }

  async usage(runId: string): Promise<IUsage | null> {
    const path = runPath(runId, 'usage');
    return (await this._client.get<Schema<'RunUsage'>>(path)).usage;
  }

  /** What it has cost so far. */
  cost(runId: string): Promise<Schema<'RunCost'>> {
    return this._client.get(runPath(runId, 'cost'));
  }

  /** Its limits, phases and ranks, by its own records. */
  overview(runId: string): Promise<IRunOverview> {
    return this._client.get(runPath(runId, 'overview'));
  }

  /** What its launchers sampled; of one node, or of the first ones. */
  resources(runId: string, node: number | null): Promise<IRunResources> {
    return this._client.get(runPath(runId, 'resources'), { query: { node } });
  }

  /** The cells of a notebook that went with it. */
  async cells(runId: string): Promise<readonly Schema<'SentCellText'>[]> {
    const path = runPath(runId, 'cells');
    return (await this._client.get<Schema<'SentCells'>>(path)).cells;
  }

  /** The path of its notebook as this server has it; null outside of the server's root. */
  async notebookPath(runId: string): Promise<string | null> {
    const path = runPath(runId, 'cells');
    return (await this._client.get<Schema<'SentCells'>>(path)).path;
  }

  /** The shells on its nodes. */
  access(runId: string): Promise<IRunAccess> {
    return this._client.get(runPath(runId, 'access'));
  }

  /** What MLflow has of it. */
  mlflow(runId: string): Promise<Schema<'RunMlflow'>> {
    return this._client.get(runPath(runId, 'mlflow'));
  }

  /** Makes a link to its page in MLflow, which can be used once and soon. */
  async mlflowLink(runId: string): Promise<string> {
    const path = runPath(runId, 'mlflow', 'link');
    return (await this._client.post<Schema<'MlflowLink'>>(path, {})).url;
  }

  /** The cells as sent, with what a rank has put out so far. */
  notebook(runId: string, rank: number): Promise<IExecutedNotebook> {
    const path = runPath(runId, 'notebook');
    return this._client.get(path, { query: { rank } });
  }

  spec(runId: string): Promise<Readonly<Record<string, unknown>>> {
    return this._client.get(runPath(runId, 'spec'));
  }

  script(runId: string): Promise<INamedText> {
    return this._client.get(runPath(runId, 'script'));
  }

  async code(runId: string): Promise<readonly ICodeFile[]> {
    const path = runPath(runId, 'code');
    return (await this._client.get<Schema<'Code'>>(path)).files;
  }

  async codeFile(runId: string, path: string): Promise<INamedText> {
    const parts = path.split('/').map(encodeURIComponent);
    const found = await this._client.get<Schema<'CodeText'>>(
      runPath(runId, 'code', ...parts)
    );
    return { name: found.path, text: found.text };
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IRunClient = Pick<RunClient, keyof RunClient>;

function runPath(runId: string, ...rest: string[]): string {
  return URLExt.join('runs', encodeURIComponent(runId), ...rest);
}
