import { ApiError } from '../../api';
import { SubmitDialog } from '../dialog';
import { SubmitModel } from '../model';
import { FakeServer, formOn, previewOf, runOf, settled, trans } from './fakes';

/** jsdom has no CSS object. */
const css = { escape: (text: string) => text.replace(/\./g, '\\.') };

describe('the submit dialog', () => {
  let server: FakeServer;
  let model: SubmitModel;
  let dialog: SubmitDialog;
  let closed: Promise<unknown>;

  const scrolled = jest.fn();

  beforeEach(async () => {
    Object.assign(window, { CSS: css });
    scrolled.mockClear();
    Object.assign(Element.prototype, { scrollIntoView: scrolled });
    server = new FakeServer();
    model = await formOn(server);
    dialog = new SubmitDialog(model, trans);
    closed = dialog.launch();
    await drawn();
  });

  afterEach(() => {
    if (!dialog.isDisposed) {
      dialog.reject();
    }
  });

  async function drawn(): Promise<void> {
    await new Promise(resolve => setTimeout(resolve, 30));
    await new Promise(resolve => requestAnimationFrame(resolve));
  }

  /** Wait until a field has the focus. */
  async function focused(path: string): Promise<void> {
    for (let turn = 0; turn < 50; turn++) {
      const { activeElement } = document;
      if (activeElement?.getAttribute('data-field') === path) {
        return;
      }
      await drawn();
    }
    throw new Error(`${path} does not get the focus`);
  }

  function find<T extends HTMLElement>(selector: string): T {
    const found = dialog.node.querySelector<T>(selector);
    if (!found) {
      throw new Error(`there is no ${selector}`);
    }
    return found;
  }

  function press(target: HTMLElement, init: KeyboardEventInit): void {
    target.dispatchEvent(
      new KeyboardEvent('keydown', { bubbles: true, ...init })
    );
  }

  function button(text: string): HTMLButtonElement {
    const all = [...dialog.node.querySelectorAll('button')];
    const found = all.find(one => one.textContent?.includes(text));
    if (!found) {
      throw new Error(`there is no button ${text}`);
    }
    return found;
  }

  it('has a label for every field', async () => {
    button('More settings').click();
    await drawn();
    const fields = [
      ...dialog.node.querySelectorAll<HTMLInputElement>(
        '.jp-HyperPod-FieldRow input, select, textarea'
      )
    ];
    expect(fields.length).toBeGreaterThan(model.fields.length);
    for (const field of fields) {
      expect(field.labels?.[0]?.textContent?.trim()).toBeTruthy();
    }
  });

  it('shows basic fields first and begins there', async () => {
    expect(dialog.node.querySelector('[data-field="args"]')).toBeNull();
    await focused('resources.nodes');
  });

  it('names the settings behind More, and brings them into sight', async () => {
    model.set({ args: '--fast' });
    await drawn();
    const more = button('More settings');
    expect(more.textContent).toBe('More settings (in use: Arguments)');
    expect(scrolled).not.toHaveBeenCalled();
    more.click();
    await drawn();
    expect(scrolled).toHaveBeenCalledTimes(1);
    expect(find('[data-field="args"]')).toBeTruthy();
  });

  it('shows the settings behind More that it was opened with', async () => {
    dialog.reject();
    const spec = { args: ['--fast'] };
    model = await formOn(server, { start: { cluster: null, spec } });
    dialog = new SubmitDialog(model, trans);
    closed = dialog.launch();
    await focused('resources.nodes');
    await drawn();
    const field = find<HTMLInputElement>('[data-field="args"]');
    expect(field.value).toBe('--fast');
    expect(scrolled).not.toHaveBeenCalled();
  });

  it('tells a refusal by the name of its field', async () => {
    const detail = { field: 'spec.time_limit' };
    const message = 'spec.time_limit: too long';
    server.answerPreview = () =>
      Promise.reject(
        new ApiError({ code: 'x', message, hint: null, detail }, 400)
      );
    model.set({ time_limit: '2h' });
    await settled(model);
    await drawn();
    expect(find('[role=alert]').textContent).toBe('Time limit: too long');
  });

  it('goes to the field of a finding, behind More too', async () => {
    server.answerPreview = () =>
      Promise.resolve(
        previewOf([
          { level: 'error', code: 'x', message: 'bad', field: 'args' }
        ])
      );
    model.set({ name: 'a' });
    await settled(model);
    await drawn();
    button('Go to').click();
    await focused('args');
  });

  it('is not sent by Enter in a field, but by Ctrl+Enter', async () => {
    const field = find('[data-field="name"]');
    press(field, { key: 'Enter' });
    await drawn();
    expect(server.submits).toEqual([]);
    press(field, { key: 'Enter', ctrlKey: true });
    await closed;
    expect(server.submits).toHaveLength(1);
    expect((await dialog.sent())?.run_id).toBe(server.submits[0].run_id);
  });

  it('stays open and goes to the field that is wrong', async () => {
    model.set({ 'resources.nodes': 'many' });
    await drawn();
    button('Submit').click();
    await drawn();
    const field = find<HTMLInputElement>('[data-field="resources.nodes"]');
    expect(document.activeElement).toBe(field);
    expect(field.getAttribute('aria-invalid')).toBe('true');
    const described = (field.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .map(id => document.getElementById(id)?.textContent);
    expect(described).toContain('Enter a whole number, such as 2.');
    expect(dialog.isDisposed).toBe(false);
    expect(server.submits).toEqual([]);
  });

  it('gives the run though it is closed while that is sent', async () => {
    let answer: () => void = () => undefined;
    server.answerSubmit = body =>
      new Promise(resolve => (answer = () => resolve(runOf(body.run_id))));
    button('Submit').click();
    button('Submit').click();
    press(find('[data-field="name"]'), { key: 'Escape' });
    await closed;
    answer();
    expect((await dialog.sent())?.run_id).toBe(server.submits[0].run_id);
    expect(server.submits).toHaveLength(1);
  });

  it('is closed by Escape, with nothing sent', async () => {
    press(find('[data-field="name"]'), { key: 'Escape' });
    await closed;
    expect(await dialog.sent()).toBeNull();
    expect(dialog.isDisposed).toBe(true);
    expect(model.isDisposed).toBe(true);
  });

  it('leads Tab through all of itself, and round', async () => {
    await focused('resources.nodes');
    const close = button('Cancel');
    const send = button('Submit');
    const first = find<HTMLElement>('input[type=radio]:checked');
    send.focus();
    press(send, { key: 'Tab' });
    expect(document.activeElement).toBe(first);
    press(first, { key: 'Tab', shiftKey: true });
    expect(document.activeElement).toBe(send);
    // In between the browser knows the way.
    close.focus();
    press(close, { key: 'Tab' });
    expect(document.activeElement).toBe(close);
  });

  it('tells findings to those who cannot see them', () => {
    expect(find('[data-findings]').getAttribute('aria-live')).toBe('polite');
    expect(find('[data-findings]').textContent).toContain('Ready to submit');
  });
});

describe('the submit dialog without a server', () => {
  let server: FakeServer;
  let model: SubmitModel;
  let dialog: SubmitDialog;
  let closed: Promise<unknown>;

  async function open(retry: number): Promise<void> {
    Object.assign(window, { CSS: css });
    server = new FakeServer();
    const schema = server.schema.bind(server);
    server.schema = () => Promise.reject(new Error('gone'));
    model = await formOn(server);
    server.schema = schema;
    dialog = new SubmitDialog(model, trans, retry);
    closed = dialog.launch();
    await until(() => document.activeElement?.textContent === 'Try again');
  }

  async function until(isSo: () => boolean): Promise<void> {
    for (let turn = 0; turn < 100 && !isSo(); turn++) {
      await new Promise(resolve => setTimeout(resolve, 10));
    }
    expect(isSo()).toBe(true);
  }

  it('has the keys, and is closed by Escape', async () => {
    await open(100_000);
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { bubbles: true, key: 'Escape' })
    );
    await closed;
    expect(dialog.isDisposed).toBe(true);
  });

  it('goes on with "Try again"', async () => {
    await open(100_000);
    (document.activeElement as HTMLElement).click();
    await until(
      () =>
        document.activeElement?.getAttribute('data-field') === 'resources.nodes'
    );
    dialog.reject();
  });

  it('goes on by itself', async () => {
    await open(20);
    await until(() => model.ready);
    dialog.reject();
  });
});
