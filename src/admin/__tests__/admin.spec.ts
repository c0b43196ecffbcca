import { Event } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { ADMIN_EVENT, AdminModel } from '../model';
import { AdminPage } from '../page';
import { AdminRights } from '../rights';
import { FakeClient, PLAN, work } from './answers';

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
          : Promise.resolve(answerOf('AdminRightsAnswer'));
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
    await until(() => !text().includes('Loading…') && text().length > 300);
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
    client.right = { offered: false, domain: null, reason };
    Widget.attach(page, document.body);
    await until(() => text().includes('AWS does not let you'));
    tell();
    expect(client.calls.filter(call => call !== 'read')).toEqual(['rights']);
    expect(button('Preview changes')).toBeUndefined();
  });

  it('shows a plan, applies it once it is confirmed, and no other', async () => {
    client.answer = work(2, 'planned', { plan: PLAN });
    await show();
    await until(() => text().includes('profile bob'));
    expect(text()).toContain('To do: 2. Waiting: 1. Blocked: 0.');
    expect(text()).toContain('User profiles: 3 of 4 need a change');
    expect(text()).toContain('Files stay where they are.');
    expect(text()).toContain('Current state: All users share one folder.');
    const heading = () => page.node.querySelector('h2')?.textContent;
    const what = 'mount one folder per user profile in d-1';
    expect(heading()).toBe(`Plan: ${what}`);
    // Two statements on one topic stand under one heading.
    const topics = [...page.node.querySelectorAll('dt')];
    expect(topics.map(one => one.textContent)).toEqual(['Files', 'Access']);
    // Who mounts what, and whose folder changes.
    const [now, after] = page.node.querySelectorAll(
      '.jp-HyperPod-Admin-picture > section'
    );
    expect(now.textContent).toContain('/shared4 usersalice, bob, carol, dave');
    expect(after.textContent).toContain('30 usersbob, carol and 28 more');
    expect(after.textContent).toContain('Future users: not mounted');
    const moved = [...after.querySelectorAll('mark')];
    expect(moved.map(one => one.textContent)).toEqual(['bob', 'carol']);
    expect(now.querySelector('mark')).toBeNull();
    // Details are there on request, and the steps while they are done.
    const steps = () =>
      page.node.querySelector('.jp-HyperPod-Admin-steps')?.hasAttribute('open');
    expect(steps()).toBe(false);
    agreed = false;
    button('Apply changes…')?.click();
    await Promise.resolve();
    expect(client.calls).not.toContain('apply abc');
    agreed = true;
    client.answer = work(3, 'applying', {
      plan: PLAN,
      results: { done: 1, failed: 0, left: 1 }
    });
    button('Apply changes…')?.click();
    await until(() => text().includes('1 of 2 steps done…'));
    expect(client.calls).toContain('apply abc');
    expect(heading()).toBe(`In progress: ${what}`);
    expect(steps()).toBe(true);
    const bar = page.node.querySelector('progress');
    expect([bar?.value, bar?.max]).toEqual([1, 2]);
    client.answer = work(4, 'applied', {
      plan: PLAN,
      results: { done: 1, failed: 1, left: 0 }
    });
    tell();
    await until(() => text().includes('Done: 1. Failed: 1.'));
    expect(heading()).toBe(`Partly done: ${what}`);
    expect(button('Apply changes…')).toBeUndefined();
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
    await until(() => button('Apply changes…') !== undefined);
    button('Apply changes…')?.click();
    await until(() => text().includes('Nothing was applied because'));
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
    expect(button('Apply changes…')?.disabled).toBe(true);
    client.answer = work(3, 'planned', {
      plan: {
        ...PLAN,
        counts: { as_wanted: 4, to_do: 0, waits: 0, blocked: 0 }
      }
    });
    tell();
    await until(() => text().includes('Everything is up to date'));
    expect(button('Apply changes…')?.disabled).toBe(true);
  });

  it('says which mode is there, and reads it again once a plan was applied', async () => {
    client.found = { mode: 'per-user', shared_path: null };
    await show();
    const chosen = () =>
      page.node.querySelector('input[type="radio"]:checked')?.closest('label')
        ?.textContent;
    await until(() => chosen() !== undefined);
    expect(chosen()).toMatch(/^One folder per user profile current/);
    client.found = { mode: 'both', shared_path: null };
    client.answer = work(4, 'applied', { plan: PLAN });
    tell();
    await until(() => text().includes('current for some'));
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
