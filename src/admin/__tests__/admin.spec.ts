import { Event } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { ITablePage } from '../../clusters/types';
import { IAdminClient } from '../client';
import { askedOf, firstDraft, isOfOther, withThere } from '../draft';
import { ADMIN_EVENT, AdminModel } from '../model';
import { AdminPage } from '../page';
import { AdminRights } from '../rights';
import {
  decodeChoices,
  decodeSteps,
  decodeWork,
  IAsked,
  IChoices,
  IRights,
  IStepsQuery,
  IThere,
  IWork
} from '../types';

const ASKED = {
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

const PLAN = {
  id: 'abc',
  changed: false,
  now: 'shared',
  file_system: 'fs-1',
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
function work(
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

const CHOICES = {
  domain: null,
  domains: [{ id: 'd-1', name: 'example' }],
  file_systems: [
    { id: 'fs-1', name: null, state: 'AVAILABLE', clusters: ['ml-cluster'] }
  ],
  folder_clusters: [],
  notes: []
};

class FakeClient implements IAdminClient {
  readonly calls: string[] = [];
  answer: unknown = work(0, 'none');
  failure: ApiError | null = null;
  right: IRights = { offered: true, reason: null };
  found: IThere = { mode: null, sharedPath: null };

  rights(): Promise<IRights> {
    this.calls.push('rights');
    return Promise.resolve(this.right);
  }

  choices(): Promise<IChoices> {
    this.calls.push('choices');
    return Promise.resolve(decodeChoices(CHOICES));
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
    return Promise.resolve(
      decodeSteps({ steps: [step], next: null, total: 1, loading: false })
    );
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
      : Promise.resolve(decodeWork(this.answer));
  }

  cancel(): Promise<IWork> {
    return this._answer('cancel');
  }

  private _answer(call: string): Promise<IWork> {
    this.calls.push(call);
    return Promise.resolve(decodeWork(this.answer));
  }
}

describe('AdminRights', () => {
  it('asks once, and offers nothing before', async () => {
    const client = new FakeClient();
    const rights = new AdminRights(client);
    expect(rights.offered).toBe(false);
    await Promise.all([rights.ask(), rights.ask()]);
    await rights.ask();
    expect(rights.offered).toBe(true);
    expect(client.calls).toEqual(['rights']);
  });

  it('asks again only where nobody answered', async () => {
    let calls = 0;
    const rights = new AdminRights({
      rights: () => {
        calls++;
        return calls === 1
          ? Promise.reject(new Error('away'))
          : Promise.resolve({ offered: false, reason: null });
      }
    });
    await rights.ask();
    expect(rights.reason).not.toBeNull();
    await rights.ask();
    await rights.ask();
    expect(calls).toBe(2);
    expect(rights.offered).toBe(false);
  });
});

describe('a draft', () => {
  const choices = decodeChoices(CHOICES);
  const none = decodeWork(work(0, 'none'));
  const planned = decodeWork(work(1, 'planned'));
  const { asked } = planned;

  it('begins with the plan that is shown, else with what is there', () => {
    const draft = firstDraft(none, choices);
    expect(draft).toMatchObject({ domain: 'd-1', fileSystem: 'fs-1' });
    // Nothing is chosen before it is known what is there.
    expect(withThere(draft, null).mode).toBeNull();
    const modes = [
      ['per-user', null, 'per-user', '/shared'],
      ['shared', '/team', 'shared', '/team'],
      ['both', '/team', 'shared', '/team'],
      ['both', null, 'per-user', '/shared'],
      [null, null, 'shared', '/shared']
    ] as const;
    for (const [mode, sharedPath, first, path] of modes) {
      expect(withThere(draft, { mode, sharedPath })).toMatchObject({
        mode: first,
        sharedPath: path
      });
    }
    const there = { mode: 'shared', sharedPath: '/team' } as const;
    expect(withThere(firstDraft(planned, choices), there).mode).toBe(
      'per-user'
    );
    const ended = decodeWork(work(1, 'applied'));
    expect(withThere(firstDraft(ended, choices), there).mode).toBe('shared');
  });

  it('asks for the profiles that are named, and is told from another plan', () => {
    const draft = firstDraft(planned, choices);
    expect(isOfOther(asked as IAsked, draft)).toBe(false);
    // The folder that all share is of no concern here.
    const path = { ...draft, sharedPath: '/else' };
    expect(isOfOther(asked as IAsked, path)).toBe(false);
    const some = { ...draft, profiles: 'bob, carol  dave' };
    expect(askedOf(some).profiles).toEqual(['bob', 'carol', 'dave']);
    expect(isOfOther(asked as IAsked, some)).toBe(true);
    expect(isOfOther({ ...askedOf(some), mode: null }, some)).toBe(false);
    expect(askedOf(some, true).mode).toBeNull();
  });
});

describe('AdminModel and its page', () => {
  let client: FakeClient;
  let events: Signal<object, Event.Emission>;
  let model: AdminModel;
  let page: AdminPage;
  let agreed = true;

  beforeEach(() => {
    client = new FakeClient();
    events = new Signal<object, Event.Emission>({});
    model = new AdminModel(client, new AdminRights(client), events, 20);
    page = new AdminPage({
      model,
      confirm: () => Promise.resolve(agreed),
      trans: nullTranslator.load('hyperpod_jlab')
    });
    agreed = true;
  });

  afterEach(() => page.dispose());

  const text = () => page.node.textContent ?? '';
  const button = (label: string) =>
    [...page.node.querySelectorAll('button')].find(
      one => one.textContent === label
    );
  const tell = () => events.emit({ schema_id: ADMIN_EVENT });
  const show = async () => {
    Widget.attach(page, document.body);
    await until(() => !text().includes('Reading…') && text().length > 300);
  };

  it('asks for nothing but the rights where there are none', async () => {
    const reason = new ApiError(
      {
        code: 'missing_right',
        message: 'AWS does not let you',
        hint: null,
        detail: {}
      },
      null
    );
    client.right = { offered: false, reason };
    Widget.attach(page, document.body);
    await until(() => text().includes('AWS does not let you'));
    tell();
    expect(client.calls.filter(call => call !== 'read')).toEqual(['rights']);
    expect(button('Show What Would Change')).toBeUndefined();
  });

  it('shows a plan, applies it once it is confirmed, and no other', async () => {
    client.answer = work(2, 'planned', { plan: PLAN });
    await show();
    await until(() => text().includes('profile bob'));
    expect(text()).toContain('To do: 2. Waiting: 1. Blocked: 0.');
    expect(text()).toContain('User profiles: 3 of 4 not as wanted');
    expect(text()).toContain('Files stay where they are.');
    expect(text()).toContain('Now: Everybody shares one folder.');
    const heading = () => page.node.querySelector('h2')?.textContent;
    const what = 'give each user profile in d-1 a folder of its own';
    expect(heading()).toBe(`Plan: ${what}`);
    // Two statements on one topic stand under one heading.
    const topics = [...page.node.querySelectorAll('dt')];
    expect(topics.map(one => one.textContent)).toEqual([
      'Files',
      'Who sees what'
    ]);
    agreed = false;
    button('Apply…')?.click();
    await Promise.resolve();
    expect(client.calls).not.toContain('apply abc');
    agreed = true;
    client.answer = work(3, 'applying', {
      plan: PLAN,
      results: { done: 1, failed: 0, left: 1 }
    });
    button('Apply…')?.click();
    await until(() => text().includes('1 of 2 steps are done…'));
    expect(client.calls).toContain('apply abc');
    expect(heading()).toBe(`Under way: ${what}`);
    const bar = page.node.querySelector('progress');
    expect([bar?.value, bar?.max]).toEqual([1, 2]);
    client.answer = work(4, 'applied', {
      plan: PLAN,
      results: { done: 1, failed: 1, left: 0 }
    });
    tell();
    await until(() => text().includes('Done: 1. Failed: 1.'));
    expect(heading()).toBe(`Done in part: ${what}`);
    expect(button('Apply…')).toBeUndefined();
  });

  it('shows the plan that is there when another was confirmed, and says so', async () => {
    client.answer = work(2, 'planned', { plan: PLAN });
    await show();
    client.failure = new ApiError(
      {
        code: 'other_plan',
        message: 'this plan is not the newest one',
        hint: null,
        detail: {}
      },
      409
    );
    client.answer = work(9, 'planned', {
      plan: { ...PLAN, id: 'def', changed: true }
    });
    await until(() => button('Apply…') !== undefined);
    button('Apply…')?.click();
    await until(() => text().includes('Something has changed'));
    expect(text()).toContain('this plan is not the newest one');
    expect(model.value?.plan?.id).toBe('def');
  });

  it('offers no plan that is refused, or that has nothing to do', async () => {
    const finding = {
      level: 'error',
      code: 'other_vpc',
      message: 'another network',
      hint: 'make a domain there'
    };
    client.answer = work(2, 'planned', {
      plan: { ...PLAN, findings: [finding] }
    });
    await show();
    await until(() => text().includes('another network'));
    expect(button('Apply…')?.disabled).toBe(true);
    client.answer = work(3, 'planned', {
      plan: {
        ...PLAN,
        counts: { as_wanted: 4, to_do: 0, waits: 0, blocked: 0 }
      }
    });
    tell();
    await until(() => text().includes('All is as wanted'));
    expect(button('Apply…')?.disabled).toBe(true);
  });

  it('says which mode is there, and reads it again once a plan was applied', async () => {
    client.found = { mode: 'per-user', sharedPath: null };
    await show();
    const chosen = () =>
      page.node.querySelector('input[type="radio"]:checked')?.closest('label')
        ?.textContent;
    await until(() => chosen() !== undefined);
    expect(chosen()).toMatch(/^A folder for each user profileas it is now/);
    client.found = { mode: 'both', sharedPath: null };
    client.answer = work(4, 'applied', { plan: PLAN });
    tell();
    await until(() => text().includes('as it is for some now'));
    expect(client.calls.filter(call => call === 'there d-1 fs-1').length).toBe(
      2
    );
  });

  it('takes no older answer for a newer one, and reads only while somebody looks', async () => {
    client.answer = work(5, 'planned', { plan: PLAN });
    await show();
    client.answer = work(4, 'planning');
    tell();
    await until(
      () => client.calls.filter(call => call === 'read').length === 2
    );
    expect(model.value?.version).toBe(5);
    page.hide();
    tell();
    await Promise.resolve();
    expect(client.calls.filter(call => call === 'read').length).toBe(2);
  });
});
