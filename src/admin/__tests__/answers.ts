import { answerOf } from '../../__tests__/answers';
import { ApiError } from '../../api';
import { ITablePage } from '../../clusters/types';
import { IAdminClient } from '../client';
import {
  IAsked,
  IChoices,
  IRights,
  IStepsQuery,
  IThere,
  IWork
} from '../types';

export const ASKED = {
  region: null,
  domain: 'd-1',
  cluster: null,
  file_system: 'fs-1',
  mode: 'per-user',
  shared_path: '/shared',
  profiles: null,
  take_over: false,
  folders: {
    by: 'here',
    mounted_at: '/fsx',
    cluster: null,
    queue: null,
    namespace: null,
    claim: null,
    image: null,
    user: null
  }
};

export const PLAN = {
  id: 'abc',
  changed: false,
  now: 'shared',
  file_system: 'fs-1',
  before: {
    mode: 'shared',
    groups: [
      {
        kind: 'shared',
        path: '/shared',
        count: 4,
        names: ['alice', 'bob', 'carol', 'dave']
      }
    ],
    new_profiles: '/shared'
  },
  after: {
    mode: 'mixed',
    groups: [
      {
        kind: 'shared',
        path: '/shared',
        count: 1,
        names: ['alice']
      },
      { kind: 'per-user', path: null, count: 30, names: ['bob', 'carol'] }
    ],
    new_profiles: null
  },
  counts: { as_wanted: 1, to_do: 2, waits: 1, blocked: 0 },
  drift: [{ kind: 'profile', total: 4, differ: 3 }],
  restarts: [{ target: 'space work', apps: ['JupyterLab'] }],
  findings: [],
  statements: [
    { topic: 'data', text: 'Files stay where they are.' },
    { topic: 'data', text: 'Those of bob are in /bob.' },
    { topic: 'isolation', text: 'Nothing keeps others out.' }
  ]
};

/** A plan and what became of it, as the server sends it. */
export function work(
  version: number,
  state: string,
  more: object = {}
): Record<string, unknown> {
  return {
    number: state === 'none' ? 0 : 1,
    version,
    state,
    begun_at: '2026-11-22T17:00:00Z',
    ended_at: null,
    asked: state === 'none' ? null : ASKED,
    read: { done: 0, total: 0 },
    plan: null,
    results: { done: 0, failed: 0, left: 0 },
    problem: null,
    ...more
  };
}

export const CHOICES = {
  domain: null,
  domains: [{ id: 'd-1', name: 'example' }],
  file_systems: [
    { id: 'fs-1', name: null, state: 'AVAILABLE', clusters: ['ml-cluster'] }
  ],
  folder_clusters: [],
  notes: []
};

export class FakeClient implements IAdminClient {
  readonly calls: string[] = [];
  answer: unknown = work(0, 'none');
  failure: ApiError | null = null;
  right: IRights = { offered: true, domain: null, reason: null };
  found: IThere = { mode: null, shared_path: null };

  rights(): Promise<IRights> {
    this.calls.push('rights');
    return Promise.resolve(this.right);
  }

  choices(): Promise<IChoices> {
    this.calls.push('choices');
    return Promise.resolve(answerOf('AdminChoices', CHOICES));
  }

  there(domain: string, fileSystem: string): Promise<IThere> {
    this.calls.push(`there ${domain} ${fileSystem}`);
    return Promise.resolve(this.found);
  }

  read(): Promise<IWork> {
    return this._answer('read');
  }

  steps(query: IStepsQuery): Promise<ITablePage> {
    this.calls.push(`steps ${query.state ?? 'all'}`);
    const step = {
      key: '1',
      target: 'profile bob',
      state: 'to-do',
      before: '/shared',
      after: '/bob',
      reason: null,
      hint: null,
      restarts: []
    };
    const rows = [answerOf('AdminStep', step)];
    return Promise.resolve({ rows, next: null, total: 1, loading: false });
  }

  plan(asked: IAsked): Promise<IWork> {
    return this._answer(`plan ${asked.mode}`);
  }

  apply(plan: string): Promise<IWork> {
    const failure = this.failure;
    this.failure = null;
    this.calls.push(`apply ${plan}`);
    return failure
      ? Promise.reject(failure)
      : Promise.resolve(answerOf('AdminWork', this.answer));
  }

  cancel(): Promise<IWork> {
    return this._answer('cancel');
  }

  private _answer(call: string): Promise<IWork> {
    this.calls.push(call);
    return Promise.resolve(answerOf('AdminWork', this.answer));
  }
}
