import { answerOf } from '../../__tests__/answers';
import type { ActionKind, IChange } from '../../actions/kinds';
import { ApiError, Schema } from '../../api';
import {
  IExecutedNotebook,
  ICodeFile,
  INamedText,
  IRunClient,
  IRunOverview,
  IRunPage,
  IRunQuery,
  IRunResources,
  IUsage,
  IWaitReason
} from '../client';
import type { ITrainingClient } from '../../training/client';
import { IRunAccess } from '../access';
import { IRun } from '../types';

/** A run with an id that sorts by its number. */
export function run(number: number, parts: Record<string, unknown> = {}): IRun {
  const two = String(number).padStart(2, '0');
  return answerOf('Run', {
    run_id: `20260101-0000${two}-aaaaaa`,
    name: `run ${number}`,
    cluster: 'local',
    orchestrator: 'local',
    state: 'running',
    created_at: `2026-01-01T00:00:${two}.000Z`,
    submitted_at: `2026-01-01T00:00:${two}.000Z`,
    own: true,
    ...parts
  });
}

/** A server with some runs. */
export class FakeRunClient implements IRunClient {
  runs: IRun[] = [];
  failure: ApiError | null = null;
  readonly calls: string[] = [];

  list(query: IRunQuery): Promise<IRunPage> {
    this.calls.push(`list ${query.cursor ?? ''}`.trim());
    if (this.failure) {
      return Promise.reject(this.failure);
    }
    const begin = Number(query.cursor ?? 0);
    const end = begin + query.limit;
    const next = end < this.runs.length ? String(end) : null;
    return Promise.resolve({ runs: this.runs.slice(begin, end), next });
  }

  get(runId: string): Promise<IRun> {
    this.calls.push(`get ${runId}`);
    const found = this.runs.find(item => item.run_id === runId);
    return found
      ? Promise.resolve(found)
      : Promise.reject(ApiError.local('not_found', `no run ${runId}`, 404));
  }

  act(runId: string, action: ActionKind, change?: IChange): Promise<IRun> {
    const how = change ? ` ${change.time_limit} ${change.queue}` : '';
    this.calls.push(`${action} ${runId}${how}`);
    return this.get(runId);
  }

  delete(runId: string): Promise<void> {
    this.calls.push(`delete ${runId}`);
    this.runs = this.runs.filter(one => one.run_id !== runId);
    return Promise.resolve();
  }

  family: IRun[] = [];

  children(runId: string): Promise<readonly IRun[]> {
    this.calls.push(`children ${runId}`);
    return Promise.resolve(this.family);
  }

  wait: IWaitReason = answerOf('WaitReason', { run_id: 'x', tried: 0 });

  why(runId: string): Promise<IWaitReason> {
    this.calls.push(`why ${runId}`);
    return Promise.resolve(this.wait);
  }

  glance: IRunOverview = answerOf('RunOverview');

  overview(runId: string): Promise<IRunOverview> {
    this.calls.push(`overview ${runId}`);
    return Promise.resolve(this.glance);
  }

  sampled: IRunResources = answerOf('RunResources');

  resources(runId: string, node: number | null): Promise<IRunResources> {
    this.calls.push(`resources ${runId} ${node ?? ''}`.trim());
    return Promise.resolve(this.sampled);
  }

  sent: readonly Schema<'SentCellText'>[] = [];

  cells(runId: string): Promise<readonly Schema<'SentCellText'>[]> {
    this.calls.push(`cells ${runId}`);
    return Promise.resolve(this.sent);
  }

  executed: IExecutedNotebook['document'] = { cells: [] };

  notebook(runId: string, rank: number): Promise<IExecutedNotebook> {
    this.calls.push(`notebook ${runId} ${rank}`);
    const document = this.executed;
    const name = 'train.ipynb';
    return Promise.resolve({
      run_id: runId,
      name,
      rank,
      attempt: 1,
      ended: true,
      document
    });
  }

  notebookPath(): Promise<string | null> {
    return Promise.resolve('work/train.ipynb');
  }

  used: IUsage | null = null;

  usage(runId: string): Promise<IUsage | null> {
    this.calls.push(`usage ${runId}`);
    return Promise.resolve(this.used);
  }

  costs: Schema<'RunCost'> = answerOf('RunCost', { currency: 'USD' });

  cost(runId: string): Promise<Schema<'RunCost'>> {
    this.calls.push(`cost ${runId}`);
    return Promise.resolve(this.costs);
  }

  known: Schema<'RunMlflow'> = answerOf('RunMlflow', { run_id: 'x' });

  mlflow(): Promise<Schema<'RunMlflow'>> {
    return Promise.resolve(this.known);
  }

  mlflowLink(runId: string): Promise<string> {
    this.calls.push(`mlflowLink ${runId}`);
    return Promise.resolve('https://mlflow/once');
  }

  reach: IRunAccess = answerOf('RunAccess', {
    run_id: 'x',
    shells: []
  });

  access(runId: string): Promise<IRunAccess> {
    this.calls.push(`access ${runId}`);
    return Promise.resolve(this.reach);
  }

  spec(): Promise<Readonly<Record<string, unknown>>> {
    return Promise.resolve({ name: 'x' });
  }

  script(): Promise<INamedText> {
    return Promise.resolve({ name: 'run.sh', text: 'echo' });
  }

  code(): Promise<readonly ICodeFile[]> {
    return Promise.resolve([{ path: 'a.py', size: 3 }]);
  }

  codeFile(_: string, path: string): Promise<INamedText> {
    return Promise.resolve({ name: path, text: `text of ${path}` });
  }
}

/** The routes on what runs print, of runs that print no numbers. */
export const noTraining: ITrainingClient = {
  series: runId =>
    Promise.resolve({
      run_id: runId,
      cursor: 'a-0',
      is_whole: true,
      summary: { metrics: {}, progress: null, alarms: [] },
      series: []
    }),
  summaries: () => Promise.resolve([]),
  compare: runIds =>
    Promise.resolve({
      runs: [...runIds],
      names: [...runIds],
      spec: [],
      code: [],
      metrics: {}
    })
};
