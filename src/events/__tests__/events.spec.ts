import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import type { ClusterPage } from '../../clusters/page';
import { EVENT, FakeEventClient } from './fakes';
import {
  detail,
  FakeClusterClient,
  pageOf
} from '../../clusters/__tests__/clusterFakes';

describe('Events of a HyperPod cluster', () => {
  let events: FakeEventClient;
  let page: ClusterPage;

  beforeEach(() => {
    events = new FakeEventClient();
    const client = new FakeClusterClient();
    client.detail = detail('ml-cluster', { provisioning: 'Continuous' });
    page = pageOf(client, { eventClient: events });
  });

  afterEach(() => {
    page.dispose();
  });

  const text = () => page.node.textContent ?? '';
  /** An element that has to be there. */
  function found<T extends HTMLElement>(
    selector: string,
    within: ParentNode = page.node
  ): T {
    const element = within.querySelector<T>(selector);
    if (element === null) {
      throw new Error(`there is no ${selector}`);
    }
    return element;
  }

  async function open(): Promise<void> {
    Widget.attach(page, document.body);
    const tab = () =>
      [...page.node.querySelectorAll<HTMLElement>('[role="tab"]')].find(
        one => one.textContent === 'Events'
      );
    await until(() => tab() !== undefined);
    tab()?.click();
    await until(() => events.queries.length > 0);
  }

  function set(element: HTMLElement, value: string): void {
    const prototype = Object.getPrototypeOf(element) as object;
    // React hears of a value only where it is set past its own setter.
    Reflect.set(prototype, 'value', value, element);
    element.dispatchEvent(new Event('input', { bubbles: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
  }

  it('shows level, instance and text', async () => {
    await open();
    await until(() => text().includes('Node is unhealthy.'));
    expect(events.queries[0].sort).toBe('-time');
    const [first, second] = page.node.querySelectorAll('tbody tr');
    expect(first.querySelector('[data-state="level-error"]')?.textContent).toBe(
      'error'
    );
    expect(first.textContent).toContain('(2 times)');
    // A word that is newer than this page is shown as it came.
    expect(second.textContent).toContain('Critical');
    expect(second.querySelector('button')?.textContent).toBe('(no message)');
  });

  it('asks for the level, the group and the instance that are chosen, from the first page on', async () => {
    events.next = 'cursor';
    await open();
    await until(() => text().includes('Next page'));
    const next = [...page.node.querySelectorAll('button')].find(
      button => button.textContent === 'Next page'
    );
    next?.click();
    await until(() => events.queries.length === 2);
    expect(events.queries[1].cursor).toBe('cursor');
    const [level, group] = page.node.querySelectorAll('select');
    set(level, 'warn');
    await until(() => events.queries.length === 3);
    expect(events.queries[2]).toMatchObject({ level: 'warn', sort: '-time' });
    expect(events.queries[2].cursor).toBeUndefined();
    set(group, 'workers');
    await until(() => events.queries.length === 4);
    set(found('.jp-HyperPod-Table-choices input'), EVENT.instance);
    await until(() => events.queries.length === 5);
    expect(events.queries[4]).toMatchObject({
      level: 'warn',
      group: 'workers',
      node: EVENT.instance
    });
  });

  it('shows the details of an event on a click, and asks for them only then', async () => {
    await open();
    await until(() => text().includes('Node is unhealthy.'));
    expect(events.asked).toEqual([]);
    found('tbody button').click();
    await until(
      () => document.querySelector('.jp-HyperPod-EventDetail pre') !== null
    );
    expect(events.asked).toEqual(['e-1']);
    const dialog = found('.jp-Dialog', document);
    expect(dialog.textContent).toContain('exit code 1');
    found('.jp-mod-accept', dialog).click();
    await until(() => document.querySelector('.jp-Dialog') === null);
  });

  it('says plainly that AWS keeps no events of the cluster', async () => {
    events.failure = new ApiError(
      {
        code: 'no_events',
        message: 'AWS keeps no events of ml-cluster',
        hint: 'see its nodes',
        detail: {}
      },
      422
    );
    await open();
    await until(() => text().includes('AWS keeps no events of ml-cluster'));
    expect(page.node.querySelector('[role="alert"]')).toBeNull();
    // There is nothing to choose from.
    expect(page.node.querySelector('select')).toBeNull();
  });
});
