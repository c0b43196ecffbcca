import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { IMatch, rowElement } from '../rowElement';
import { LogView } from '../logView';
import { ILogRow, LogWindow } from '../window';
import { FakeClient } from './fakeClient';
import { block, frame } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

function stream(rank: number, silent = false): object {
  const lastAt = silent ? new Date(0) : null;
  return { nodeRank: 0, node: 'n', rank, index: null, size: 1, lastAt, silent };
}

/** A view as it is on a page; the test's browser has no layout, so it is told a height. */
async function shownView(
  client: FakeClient
): Promise<{ view: LogView; list: HTMLElement }> {
  const view = new LogView({ client, runId: 'a', trans });
  const list = view.node.querySelector<HTMLElement>('[role="log"]');
  if (!list) {
    throw new Error('there is no list');
  }
  Object.defineProperty(list, 'clientHeight', { value: 360 });
  Widget.attach(view, document.body);
  await until(() => client.handler !== null);
  return { view, list };
}

describe('LogView', () => {
  it('draws the end of the log, and no more than is seen', async () => {
    const { view, list } = await shownView(new FakeClient(10_000));
    const rows = list.querySelectorAll('.jp-HyperPod-LogRow');
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.length).toBeLessThan(100);
    expect(rows[rows.length - 1].textContent).toContain('9999');
    view.dispose();
  });

  it('goes to the first line and to the last one by keys', async () => {
    const client = new FakeClient(10_000);
    const { view, list } = await shownView(client);
    const press = (key: string, init = {}) =>
      list.dispatchEvent(
        new KeyboardEvent('keydown', { key, bubbles: true, ...init })
      );
    client.handler?.end();
    const says = (text: string) => (view.node.textContent ?? '').includes(text);
    await until(() => says('The run has ended.') && says('Jump to end'));
    const last = (row: Element | null) => row?.lastElementChild?.textContent;
    const rows = list.getElementsByClassName('jp-HyperPod-LogRow');
    press('Home', { ctrlKey: true });
    await until(() => last(rows[0]) === '0');
    expect(view.model.feed.following).toBe(false);
    expect(says('Paused')).toBe(false);
    press('End');
    await until(() => last(rows[rows.length - 1]) === '9999');
    view.dispose();
  });

  it('never has more than 500 rows in the document', async () => {
    const client = new FakeClient(100);
    const { view, list } = await shownView(client);
    client.grow(5_000);
    await until(() => (list.textContent ?? '').includes('5099'));
    expect(list.querySelectorAll('.jp-HyperPod-LogRow').length).toBeLessThan(
      500
    );
    view.dispose();
  });

  it('says that there is nothing yet, and lets ranks be chosen', async () => {
    const client = new FakeClient(0);
    const streams = [stream(0), stream(1, true)];
    client.attempts = [{ number: 1, streams }] as typeof client.attempts;
    const { view } = await shownView(client);
    const says = (text: string) => (view.node.textContent ?? '').includes(text);
    await until(() => says('No output yet'));
    await until(() => says('Silent ranks: 1'));
    expect(view.model.rawUrl).toBeNull();
    expect(view.model.chooseRanks('nonsense')).toBe(false);
    expect(view.model.chooseRanks('1')).toBe(true);
    await until(() => client.pages.length === 2);
    expect(client.pages[1].ranks).toEqual([1]);
    expect(view.model.rawUrl).not.toBeNull();
    view.dispose();
    expect(client.handler).toBeNull();
  });

  it('folds ranks that say the same, and opens them on a click', async () => {
    const client = new FakeClient(0);
    const node = { ...stream(0), rank: null };
    const streams = [stream(0), stream(1), stream(2), node];
    client.attempts = [{ number: 1, streams }] as typeof client.attempts;
    const { list, view } = await shownView(client);
    const texts = () =>
      Array.from(list.querySelectorAll('.jp-HyperPod-LogRow'), row =>
        Array.from(row.children, part => part.textContent)
          .slice(1)
          .join(' ')
      );
    await until(() => view.model.foldsNow);
    const said = [0, 1, 2].map(rank => block(['step 1'], { rank }));
    client.handler?.frame(
      frame('1', ...said, block(['mine'])),
      () => undefined
    );
    await until(() => texts().join() === '0-2 step 1,0 mine');
    list.querySelector('button')?.click();
    expect(texts()).toEqual(['0 step 1', '1 step 1', '2 step 1', '0 mine']);
    expect(document.activeElement?.getAttribute('aria-expanded')).toBe('true');
    expect(view.model.feed.following).toBe(false);
    list.querySelector('button')?.click();
    expect(texts()).toEqual(['0-2 step 1', '0 mine']);
    view.model.folds = false;
    expect(texts()).toHaveLength(4);
    view.dispose();
    const { view: next } = await shownView(client);
    expect(next.model.folds).toBe(false);
    next.model.folds = true;
    next.dispose();
  });

  it('says that a rank is not there', async () => {
    const client = new FakeClient(3);
    const streams = [stream(0), stream(1)];
    client.attempts = [{ number: 1, streams }] as typeof client.attempts;
    const { view } = await shownView(client);
    const says = (text: string) => (view.node.textContent ?? '').includes(text);
    await until(() => view.model.hasRanks);
    view.model.chooseRanks('1, 9');
    await until(() => says('Rank 9 not found yet. The ranks so far are 0-1.'));
    client.handler?.end();
    await until(() => says('Rank 9 not found. The ranks are 0-1.'));
    view.model.chooseRanks('1');
    await until(() => !says('not found'));
    view.dispose();
  });

  it('marks nothing any more once nothing is found, and says why', async () => {
    const client = new FakeClient(30);
    const { list, view } = await shownView(client);
    const marked = () =>
      list.querySelectorAll('.jp-HyperPod-LogRow-match, .jp-mod-current');
    await view.model.search.find('17');
    expect(marked()).toHaveLength(2);
    await view.model.search.find('nowhere');
    expect(marked()).toHaveLength(0);
    const failure = ApiError.local('invalid_pattern', 'unclosed group');
    client.search = () => Promise.reject(failure);
    const field = view.node.querySelector<HTMLInputElement>('[type="search"]');
    if (field) {
      const { set } =
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ??
        {};
      set?.call(field, '(');
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
      );
    }
    await until(() =>
      (view.node.textContent ?? '').includes('Cannot search: unclosed group')
    );
    view.dispose();
  });

  it('leaves out the nodes’ own logs when that is chosen', async () => {
    const client = new FakeClient(3);
    const node = { ...stream(0), rank: null };
    client.attempts = [
      { number: 1, streams: [stream(0), node] }
    ] as typeof client.attempts;
    const { view } = await shownView(client);
    await until(() => (view.node.textContent ?? '').includes('Node logs'));
    expect(view.model.showsNodeLogs).toBe(true);
    view.model.showsNodeLogs = false;
    await until(() => client.pages.length === 2);
    expect(client.pages[1].nodeLogs).toBe(false);
    expect(view.model.showsNodeLogs).toBe(false);
    view.dispose();
  });
});

/** The element of one rank's row. */
function element(row: ILogRow, match: IMatch | null): HTMLElement {
  const words = { ranks: String, folded: String, opened: '' };
  return rowElement({ row, folded: null, isLead: false }, match, words);
}

describe('rowElement', () => {
  it('shows what was found, colours and all', () => {
    const window = new LogWindow();
    window.append(frame('1', block(['a\x1b[31mbcd\x1b[0m'], { rank: 3 })));
    const row = window.row(0);
    const drawn = row && element(row, { begin: 7, end: 9 });
    expect(drawn?.querySelector('mark')?.textContent).toBe('cd');
    expect(drawn?.querySelector('[data-colour="3"]')?.textContent).toBe('3');
    expect(drawn?.textContent).not.toContain('\x1b');
  });

  it('shows what turns the direction of text as a symbol', () => {
    const text = 'ok \u202eevil\u202c.';
    const window = new LogWindow();
    window.append(frame('1', block([text])));
    const row = window.row(0);
    const drawn = row && element(row, null);
    const turns = drawn?.querySelectorAll('.jp-HyperPod-LogRow-turn') ?? [];
    expect([...turns].map(item => item.getAttribute('data-code'))).toEqual([
      'U+202E',
      'U+202C'
    ]);
    expect(drawn?.textContent).toContain(text);
  });

  it('never makes markup of a line', () => {
    const window = new LogWindow();
    window.append(frame('1', block(['<img src=x onerror=alert(1)>'])));
    const row = window.row(0);
    const drawn = row && element(row, null);
    expect(drawn?.querySelector('img')).toBeNull();
  });
});
