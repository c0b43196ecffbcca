import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { Preferences } from '../../settings';
import { Finder, rowElement } from '../rowElement';
import { LogView } from '../logView';
import { LEVELS } from '../pattern';
import { ILogRow, LogWindow } from '../window';
import { FakeClient } from './fakeClient';
import { block, frame } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');

function stream(rank: number, silent = false): object {
  const lastAt = silent ? new Date(0) : null;
  return { nodeRank: 0, node: 'n', rank, index: null, size: 1, lastAt, silent };
}

/** What views remember. */
const preferences = new Preferences();

/** A view as it is on a page; the test's browser has no layout, so it is told a height. */
async function shownView(
  client: FakeClient
): Promise<{ view: LogView; list: HTMLElement }> {
  const view = new LogView({ client, runId: 'a', trans, preferences });
  const list = view.node.querySelector<HTMLElement>('[role="log"]');
  if (!list) {
    throw new Error('there is no list');
  }
  Object.defineProperty(list, 'clientHeight', { value: 360 });
  Widget.attach(view, document.body);
  await until(() => client.handler !== null);
  return { view, list };
}

function searchField(view: LogView): HTMLInputElement | null {
  return view.node.querySelector<HTMLInputElement>('[type="search"]');
}

function press(target: Element, key: string, init: KeyboardEventInit = {}) {
  const options = { key, bubbles: true, cancelable: true, ...init };
  target.dispatchEvent(new KeyboardEvent('keydown', options));
}

/** Put a text into a field as a user does. */
function type(field: HTMLInputElement | null, text: string): void {
  const { set } =
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ?? {};
  set?.call(field, text);
  field?.dispatchEvent(new Event('input', { bubbles: true }));
}

describe('LogView', () => {
  it('looks at first as the user prefers', () => {
    const preferences = new Preferences();
    void preferences.keep('logFold', false);
    const options = { client: new FakeClient(1), runId: 'a', trans };
    const view = new LogView({ ...options, preferences });
    const { folds, foldsNodes, showsTime, wraps } = view.model;
    expect([showsTime, folds, foldsNodes, wraps]).toEqual([
      true,
      false,
      true,
      true
    ]);
    view.dispose();
  });

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
    await until(() => says('The run has ended.'));
    expect(says('Jump to end')).toBe(false);
    const last = (row: Element | null) => row?.lastElementChild?.textContent;
    const rows = list.getElementsByClassName('jp-HyperPod-LogRow');
    press('Home', { ctrlKey: true });
    await until(() => last(rows[0]) === '0');
    expect(view.model.feed.following).toBe(false);
    expect(says('Paused')).toBe(false);
    await until(() => says('Jump to end'));
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

  it('marks what is found, nothing any more without it, and says why', async () => {
    const client = new FakeClient(30);
    const { list, view } = await shownView(client);
    const marks = () =>
      Array.from(
        list.querySelectorAll('.jp-HyperPod-LogRow-match'),
        mark => mark.textContent
      );
    const current = () => list.querySelectorAll('.jp-mod-current');
    await view.model.find('17');
    await until(() => current().length === 1);
    expect(marks()).toEqual(['17']);
    await view.model.find('nowhere');
    expect(marks()).toEqual([]);
    expect(current()).toHaveLength(0);
    const failure = ApiError.local('invalid_pattern', 'unclosed group');
    client.search = () => Promise.reject(failure);
    await view.model.find('(', true);
    await until(() =>
      (view.node.textContent ?? '').includes('Invalid expression')
    );
    view.dispose();
  });

  it('searches while a text is typed, and goes on by keys', async () => {
    const client = new FakeClient(30);
    const { list, view } = await shownView(client);
    await until(() => searchField(view) !== null);
    press(list, 'f', { ctrlKey: true });
    const field = searchField(view);
    expect(document.activeElement).toBe(field);
    type(field, '2');
    const says = (text: string) => (view.node.textContent ?? '').includes(text);
    await until(() => says('1 of 12'));
    press(field ?? list, 'Enter');
    await until(() => says('2 of 12'));
    press(list, 'F3', { shiftKey: true });
    await until(() => says('1 of 12'));
    press(field ?? list, 'Escape');
    await until(() => view.model.search.text === '');
    expect(document.activeElement).toBe(list);
    await until(() => searchField(view)?.value === '');
    view.dispose();
  });

  it('says which ranks are shown, and lets others be chosen', async () => {
    const client = new FakeClient(3);
    const streams = [0, 1, 2].map(rank => stream(rank));
    client.attempts = [{ number: 1, streams }] as typeof client.attempts;
    const { view } = await shownView(client);
    const chip = () =>
      view.node.querySelector<HTMLElement>('[aria-haspopup="dialog"]');
    await until(() => chip()?.textContent === 'All ranks');
    view.model.chooseRanks('2');
    await until(() => chip()?.textContent === 'Rank 2');
    client.handler?.end();
    chip()?.click();
    const field = () =>
      document.querySelector<HTMLInputElement>('[role="combobox"]');
    const enter = async (text: string) => {
      type(field(), text);
      await until(() => field()?.value === text);
      press(field() ?? document.body, 'Enter');
    };
    await until(() => field() !== null);
    await enter('9');
    const alert = () => document.querySelector('[role="alert"]')?.textContent;
    await until(() => alert() === 'Rank 9 not found. The ranks are 0-2.');
    expect(view.model.ranks).toBe('2');
    type(field(), '');
    await until(() => alert() === undefined);
    document.querySelector<HTMLElement>('[role="option"]')?.click();
    await until(() => chip()?.textContent === 'Ranks 0, 2');
    await enter('0-1');
    await until(() => chip()?.textContent === 'Ranks 0-1');
    expect(field()).toBeNull();
    view.node
      .querySelector<HTMLElement>('[aria-label="Show all ranks"]')
      ?.click();
    await until(() => chip()?.textContent === 'All ranks');
    view.dispose();
  });

  it('shows when lines and errors were written, and leads there', async () => {
    const client = new FakeClient(3);
    client.histogramValue = {
      begin: 1000,
      end: 1100,
      sizes: [5, 0, 9, 1],
      matches: [0, 0, 2, 0],
      matches_until: null,
      logs: 1,
      logs_total: 1
    };
    const { view } = await shownView(client);
    const strip = () => view.node.querySelector('[role="slider"]');
    await until(() => strip() !== null);
    const bars = () => strip()?.querySelectorAll('rect.jp-mod-error').length;
    expect(bars()).toBe(2);
    for (const now of [0, 1, 2]) {
      press(strip() ?? document.body, 'ArrowRight');
      await until(() => strip()?.getAttribute('aria-valuenow') === String(now));
    }
    expect(strip()?.getAttribute('aria-valuetext')).toContain('2 errors');
    press(strip() ?? document.body, 'Enter');
    await until(() => client.pages.some(({ since }) => since === 1050));
    view.dispose();
  });

  it('shows only lines that match, or are errors', async () => {
    const client = new FakeClient(30);
    const { view } = await shownView(client);
    const button = (name: string) =>
      Array.from(view.node.querySelectorAll('button')).find(
        found =>
          (found.getAttribute('aria-label') ?? found.textContent) === name
      );
    await until(() => button('Errors') !== undefined);
    await view.model.find('1.5');
    button('Show only matching lines')?.click();
    await until(() => client.handler !== null && client.pages.length === 2);
    const last = () => client.pages[client.pages.length - 1];
    expect(last().grep).toBe('1\\.5');
    expect(last().ignoreCase).toBe(true);
    const { request } = client.follows[client.follows.length - 1];
    expect(request.grep).toBe('1\\.5');
    const count = client.pages.length;
    await view.model.find('(', true);
    expect(client.pages).toHaveLength(count);
    await view.model.find('');
    await until(() => last().grep === undefined);
    button('Errors')?.click();
    await until(() => last().grep === LEVELS.error);
    await until(
      () => button('Errors')?.getAttribute('aria-pressed') === 'true'
    );
    button('Errors')?.click();
    await until(() => last().grep === undefined);
    view.dispose();
  });

  it('folds the launcher’s lines to one, and shows them when asked', async () => {
    const client = new FakeClient(0);
    const node = { ...stream(0), rank: null };
    client.attempts = [
      { number: 1, streams: [stream(0), node] }
    ] as typeof client.attempts;
    const { list, view } = await shownView(client);
    await until(() => view.model.foldsNodesNow);
    const lines = block(['one', 'two', 'three'], { rank: null });
    client.handler?.frame(frame('1', block(['mine']), lines), () => undefined);
    await until(() => (list.textContent ?? '').includes('launcher: 3 lines'));
    expect(list.textContent).not.toContain('two');
    list.querySelector('button')?.click();
    expect(list.textContent).toContain('two');
    view.model.showsNodeLogs = false;
    await until(() => client.pages.length === 2);
    expect(client.pages[1].nodeLogs).toBe(false);
    expect(view.model.showsNodeLogs).toBe(false);
    view.dispose();
  });
});

/** The element of one rank's row. */
function element(row: ILogRow, find: Finder = () => []): HTMLElement {
  const words = {
    ranks: String,
    nodes: String,
    folded: String,
    hidden: String,
    show: '',
    opened: ''
  };
  const shown = { row, texts: [row.text], folded: null, hidden: 0, nodes: 0 };
  return rowElement({ ...shown, isLead: false }, find, words);
}

describe('rowElement', () => {
  it('shows what was found, colours and all', () => {
    const window = new LogWindow();
    window.append(frame('1', block(['a\x1b[31mbcd\x1b[0m'], { rank: 3 })));
    const row = window.row(0);
    const drawn = row && element(row, () => [{ begin: 7, end: 9 }]);
    expect(drawn?.querySelector('mark')?.textContent).toBe('cd');
    expect(drawn?.querySelector('[data-colour="3"]')?.textContent).toBe('3');
    expect(drawn?.textContent).not.toContain('\x1b');
  });

  it('shows what turns the direction of text as a symbol', () => {
    const text = 'ok \u202eevil\u202c.';
    const window = new LogWindow();
    window.append(frame('1', block([text])));
    const row = window.row(0);
    const drawn = row && element(row);
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
    const drawn = row && element(row);
    expect(drawn?.querySelector('img')).toBeNull();
  });
});
