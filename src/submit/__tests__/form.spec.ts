import { answerOf } from '../../__tests__/answers';
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

  beforeEach(async () => {
    Object.assign(window, { CSS: css });
    Object.assign(Element.prototype, { scrollIntoView: jest.fn() });
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

  function type(field: HTMLInputElement, text: string): void {
    const set = Object.getOwnPropertyDescriptor(
      HTMLInputElement.prototype,
      'value'
    )?.set;
    set?.call(field, text);
    field.dispatchEvent(new Event('input', { bubbles: true }));
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
    for (const group of ['Program', 'Environment', 'Scheduling']) {
      button(group).click();
    }
    await drawn();
    const fields = [
      ...dialog.node.querySelectorAll<HTMLInputElement>(
        '.jp-HyperPod-FieldRow :is(input, select, textarea)'
      )
    ];
    expect(fields.length).toBeGreaterThan(8);
    for (const field of fields) {
      expect(field.labels?.[0]?.textContent?.trim()).toBeTruthy();
    }
  });

  it('shows what everyone sets first and begins there', async () => {
    expect(dialog.node.querySelector('[data-field="args"]')).toBeNull();
    await focused('resources.nodes');
  });

  it('counts the settings in a group, and unfolds it', async () => {
    model.set({ args: '--fast' });
    await drawn();
    const program = button('Program');
    expect(program.textContent).toBe('Program (1 set)');
    expect(program.getAttribute('aria-expanded')).toBe('false');
    program.click();
    await drawn();
    expect(program.getAttribute('aria-expanded')).toBe('true');
    expect(find('[data-field="args"]')).toBeTruthy();
  });

  it('finds a setting by words of its label or its help', async () => {
    const search = find<HTMLInputElement>('[data-search]');
    type(search, 'restarts');
    await drawn();
    expect(find('[data-field="max_restarts"]')).toBeTruthy();
    expect(dialog.node.querySelector('[data-field="args"]')).toBeNull();
    type(search, 'no such thing');
    await drawn();
    expect(dialog.node.textContent).toContain('No setting matches');
  });

  it('has only what the chosen cluster understands', async () => {
    const groups = () =>
      [...dialog.node.querySelectorAll('.jp-HyperPod-ToggleBar-button')].map(
        one => one.textContent
      );
    expect(groups()).not.toContain('Slurm');
    expect(groups()).not.toContain('Kubernetes');
    model.setCluster('ml');
    await settled(model);
    await drawn();
    expect(groups()).toContain('Slurm');
    expect(groups()).not.toContain('Kubernetes');
    model.set({ 'kubernetes.patch': '{"a": 1}' });
    await drawn();
    expect(groups()).toContain('Kubernetes (1 set)');
  });

  it('unfolds the groups that it was opened with settings of', async () => {
    dialog.reject();
    const spec = { args: ['--fast'] };
    model = await formOn(server, { start: { cluster: null, spec } });
    dialog = new SubmitDialog(model, trans);
    closed = dialog.launch();
    await focused('resources.nodes');
    await drawn();
    const field = find<HTMLInputElement>('[data-field="args"]');
    expect(field.value).toBe('--fast');
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
    expect(find('[data-findings] li').textContent).toContain('Too long');
    expect(button('Go to “Time limit”')).toBeTruthy();
    expect(button('Submit').disabled).toBe(true);
  });

  it('goes to the field of a finding, in a folded group too', async () => {
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

  it.each([{}, { ctrlKey: true }])('is sent by Enter, %j', async keys => {
    press(find('[data-field="name"]'), { key: 'Enter', ...keys });
    await closed;
    expect(server.submits).toHaveLength(1);
    expect((await dialog.sent())?.run_id).toBe(server.submits[0].run_id);
  });

  it('is not sent by Enter in a search or a long text', async () => {
    button('Program').click();
    await drawn();
    press(find('[data-search]'), { key: 'Enter' });
    press(find('[data-field="args"]'), { key: 'Enter' });
    await drawn();
    expect(server.submits).toEqual([]);
    press(find('[data-field="args"]'), { key: 'Enter', ctrlKey: true });
    await closed;
    expect(server.submits).toHaveLength(1);
  });

  it('stays open, says how many fields are wrong and goes to the first', async () => {
    model.set({ 'resources.nodes': 'many' });
    await drawn();
    expect(button('Submit').disabled).toBe(true);
    expect(find('.jp-HyperPod-StatusLine').textContent).toContain(
      'Fix 1 field'
    );
    press(find('[data-field="name"]'), { key: 'Enter' });
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

  it('keeps the preview in sight while a field is wrong', async () => {
    button('Code').click();
    await drawn();
    expect(dialog.node.textContent).toContain('x = 1');
    model.set({ 'resources.nodes': 'many' });
    await drawn();
    expect(dialog.node.textContent).toContain('x = 1');
    expect(dialog.node.textContent).toContain(
      'Fix 1 field to update the preview.'
    );
  });

  it('steps by buttons and arrow keys', async () => {
    const nodes = find<HTMLInputElement>('[data-field="resources.nodes"]');
    expect(nodes.placeholder).toBe('1');
    find('[aria-label="Nodes: more"]').click();
    await drawn();
    expect(nodes.value).toBe('2');
    press(nodes, { key: 'ArrowUp' });
    await drawn();
    expect(nodes.value).toBe('3');
    press(nodes, { key: 'ArrowDown' });
    await drawn();
    expect(nodes.value).toBe('2');
  });

  it('says what the run would cost, and by which prices', async () => {
    server.answerPreview = () =>
      Promise.resolve({
        ...previewOf(),
        cost: answerOf('Estimate', {
          ...{ currency: 'USD', per_hour: 98, at_most: 196 },
          notes: ['the highest price is shown']
        })
      });
    model.set({ time_limit: '2h' });
    await settled(model);
    await drawn();
    const words = [...find('.jp-HyperPod-StatusLine').children].find(one =>
      one.textContent?.includes('$')
    );
    expect(words?.textContent).toBe('about $98/h, at most $196');
    expect(words?.getAttribute('title')).toBe('The highest price is shown');
    model.set({ 'resources.nodes': 'many' });
    await drawn();
    expect(find('.jp-HyperPod-StatusLine').textContent).not.toContain('$');
  });

  it('asks again before it sends what may cost more than the limit', async () => {
    const message = 'the run may cost 200.00 USD, which is over the limit';
    const code = 'cost_not_confirmed';
    const field = 'resources.nodes';
    server.answerPreview = () =>
      Promise.resolve(previewOf([{ level: 'error', code, message, field }]));
    server.answerSubmit = body =>
      body.accept_cost
        ? Promise.resolve(runOf(body.run_id))
        : Promise.reject(ApiError.local(code, message, 422));
    model.set({ name: 'a' });
    await settled(model);
    await drawn();
    expect(find('[data-findings]').textContent).toContain('Warning: The run');
    expect(button('Submit').disabled).toBe(false);
    button('Submit').click();
    await drawn();
    const question = find('[data-cost]');
    expect(question.textContent).toContain('Submit it anyway?');
    expect(document.activeElement).toBe(question);
    expect(find('[data-findings]').textContent).toBe('');
    // Another run is another question.
    model.set({ name: 'b' });
    await settled(model);
    await drawn();
    expect(dialog.node.querySelector('[data-cost]')).toBeNull();
    button('Submit').click();
    await drawn();
    button('Submit anyway').click();
    await closed;
    expect(server.submits.map(body => body.accept_cost)).toEqual([
      undefined,
      undefined,
      true
    ]);
    expect(server.submits[2].run_id).toBe(server.submits[1].run_id);
    expect((await dialog.sent())?.run_id).toBe(server.submits[2].run_id);
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
    const first = button('Defaults');
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

  it('takes the focus back to where it was when a page opens behind it', async () => {
    await focused('resources.nodes');
    const name = find<HTMLInputElement>('[data-field="name"]');
    name.focus();
    const page = document.body.appendChild(document.createElement('button'));
    page.focus();
    expect(document.activeElement).toBe(name);
    page.remove();
  });

  it('tells findings to those who cannot see them', () => {
    expect(find('[data-findings]').getAttribute('aria-live')).toBe('polite');
    const state = find('.jp-HyperPod-StatusLine [role=status]');
    expect(state.textContent).toContain('Ready to submit');
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
