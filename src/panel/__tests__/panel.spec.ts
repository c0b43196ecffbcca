import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { list, row } from '../../clusters/__tests__/clusterFakes';
import { FakeRunClient, run } from '../../runs/__tests__/fakes';
import { LOCAL, menuEntries, press, Shown } from './fakes';

let shown: Shown;

afterEach(() => shown.dispose());

describe('The panel’s clusters', () => {
  const reach = (word: string, sentence: string) => ({
    reach: { word, sentence, next_step: null, config: null }
  });

  async function show(...clusters: unknown[]): Promise<void> {
    shown = new Shown();
    shown.clusterClient.answer = list(...clusters);
    await shown.show();
    const count = clusters.length;
    await until(() => shown.rows('Clusters').length === count);
  }

  it('tell their GPUs and jobs, and are opened', async () => {
    const gpus = [
      { type: 'h100', total: 32, used: 20, free: 12, unavailable: 0 }
    ];
    await show({ ...LOCAL, name: 'ml', orchestrator: 'slurm', gpus }, LOCAL);
    const [ml] = shown.rows('Clusters');
    expect(ml.textContent).toContain('12 of 32 H100 free');
    expect(ml.textContent).toContain('2 running · 3 waiting');
    const bar = ml.querySelector<HTMLElement>('.jp-HyperPod-Bar-part');
    expect(bar?.style.width).toBe('62.5%');
    ml.click();
    expect(shown.done).toEqual(['cluster ml ']);
  });

  it('draw no bar of GPUs that are hidden from the user', async () => {
    const gpus = [{ type: 'a100', total: 8, used: null, free: null }];
    const notes = ['Nodes are hidden from you.'];
    await show({ ...LOCAL, name: 'ml', orchestrator: 'slurm', gpus, notes });
    const [ml] = shown.rows('Clusters');
    expect(ml.textContent).toContain('8 A100');
    expect(ml.querySelector('.jp-HyperPod-Bar')).toBeNull();
    expect(ml.title).toContain(notes[0]);
  });

  it('say why one accepts no runs, with its age and the way to the doctor', async () => {
    await show({
      ...LOCAL,
      state: 'misconfigured',
      reason: 'no namespace',
      as_of: new Date(Date.now() - 300_000).toISOString()
    });
    const [lost] = shown.rows('Clusters');
    expect(lost.textContent).toContain('no namespace');
    expect(lost.querySelector('[role="img"]')?.getAttribute('aria-label')).toBe(
      'misconfigured'
    );
    expect(lost.title).toContain('Updated 5 min ago');
    expect(lost.closest('.jp-mod-stale')).not.toBeNull();
    shown.button('Run HyperPod Doctor')?.click();
    expect(shown.done).toEqual(['doctor']);
  });

  it('of AWS come last, each with what is missing or with Connect', async () => {
    const groups = [
      {
        name: 'c',
        instance_type: 'ml.m5.large',
        current: 9,
        slurm_role: 'Login'
      },
      { name: 'w', instance_type: 'ml.g5.xlarge', current: 8, slurm_role: null }
    ];
    await show(
      row('near', { groups, ...reach('ready', 'add it') }),
      LOCAL,
      row('early', reach('not-in-service', 'the EKS cluster has no address')),
      { ...row('broken', { reason: 'scripts failed' }), state: 'failed' }
    );
    expect(shown.names('Clusters')).toEqual([
      'local',
      'near',
      'early',
      'broken'
    ]);
    const [, near, early, broken] = shown.rows('Clusters');
    expect(near.textContent).toContain('8 × g5.xlarge · not connected');
    // One state, and no contradiction.
    expect(early.textContent).toContain('the EKS cluster has no address');
    expect(early.textContent).not.toContain('in service');
    expect(broken.textContent).toContain('failed: scripts failed');
    const connects = Array.from(shown.panel.node.querySelectorAll('button'));
    const offered = connects.filter(one => one.textContent === 'Connect');
    expect(offered).toHaveLength(1);
    offered[0].click();
    near.click();
    expect(shown.done).toEqual(['connect near', 'cluster near ']);
  });

  it('of AWS are there at once, the rest when it comes', async () => {
    const bare = { described_at: null, orchestrator: null, nodes: null };
    shown = new Shown();
    shown.clusterClient.answer = {
      ...list(LOCAL, row('one', bare)),
      loading: true
    };
    void shown.show();
    await until(() => shown.text.includes('one'));
    expect(shown.text).toContain('Loading…');
    shown.clusterClient.answer = list(LOCAL, row('one'));
    await until(() => shown.text.includes('5 nodes'));
    expect(shown.clusterClient.asked.every(([, forced]) => !forced)).toBe(true);
  });

  it('make no noise about AWS where there is no account', async () => {
    shown = new Shown();
    const problem = { code: 'no_aws_credentials', message: 'none', hint: 'x' };
    shown.clusterClient.answer = { ...list(LOCAL), problem, as_of: null };
    await shown.show();
    await until(() => shown.text.includes('Only this machine is configured'));
    expect(shown.text).not.toContain('AWS');
    expect(shown.panel.node.querySelector('select')).toBeNull();
    expect(shown.button('Run HyperPod Doctor')).toBeUndefined();
  });

  it('say in one line why AWS tells nothing, or nothing new', async () => {
    await show(LOCAL, row('one'));
    const problem = { code: 'x', message: 'too many calls', hint: 'wait' };
    shown.clusterClient.answer = { ...list(LOCAL, row('one')), problem };
    await until(() => shown.text.includes('too many calls'));
    expect(shown.text).toMatch(/AWS, updated .* ago: too many calls/);
    expect(shown.names('Clusters')).toEqual(['local', 'one']);
    expect(shown.panel.node.querySelector('[role="alert"]')).toBeNull();
    shown.clusterClient.answer = { ...list(LOCAL), problem, as_of: null };
    await until(() => shown.text.includes('AWS: too many calls'));
  });

  it('are those of another region, by their ARNs', async () => {
    await show(LOCAL, row('one'));
    const select = () => shown.panel.node.querySelector('select');
    await until(() => select()?.options.length === 3);
    expect(select()?.options[0].textContent).toBe('us-west-2 (default)');
    shown.clusterClient.answer = list(LOCAL, row('far'));
    await shown.regions.choose('eu-west-1');
    await until(() => shown.names('Clusters').includes('far'));
    expect(shown.names('Clusters')).toEqual(['local', 'far']);
    expect(select()?.value).toBe('eu-west-1');
  });

  it('can be more than are shown', async () => {
    shown = new Shown();
    shown.clusterClient.answer = { ...list(LOCAL, row('one')), total: 152 };
    await shown.show();
    await until(() => shown.button('150 more clusters') !== undefined);
    shown.button('150 more clusters')?.click();
    await until(() =>
      shown.clusterClient.asked.some(([limit]) => limit === '200')
    );
  });

  it('are not asked for behind another panel, nor while they are folded', async () => {
    await show(LOCAL);
    const stands = async () => {
      const asked = shown.clusterClient.lists.length;
      await new Promise(resolve => setTimeout(resolve, 150));
      expect(shown.clusterClient.lists).toHaveLength(asked);
      return asked;
    };
    shown.panel.hide();
    const asked = await stands();
    shown.panel.show();
    await until(() => shown.clusterClient.lists.length > asked);
    shown.button('Clusters')?.click();
    const before = await stands();
    expect(shown.rows('Clusters')).toEqual([]);
    shown.button('Clusters')?.click();
    await until(() => shown.clusterClient.lists.length > before);
  });
});

describe('The panel’s runs', () => {
  async function show(
    runs: FakeRunClient['runs'],
    actions: Shown['actions'] = {}
  ): Promise<void> {
    shown = new Shown();
    shown.runClient.runs = runs;
    shown.actions = actions;
    await shown.show();
    if (runs.length > 0) {
      await until(() => shown.rows('Runs').length > 0);
    }
  }

  const ended = (number: number, more: object = {}) =>
    run(number, {
      state: 'succeeded',
      started_at: '2026-01-01T00:00:00.000Z',
      ended_at: '2026-01-01T00:00:16.000Z',
      ...more
    });

  it('begin with those at work, then go by day', async () => {
    const now = new Date().toISOString();
    await show([
      ended(9, { ended_at: now, state: 'failed', reason: 'it fell' }),
      run(3),
      ended(2),
      run(1, { state: 'waiting', reason: 'behind others' })
    ]);
    expect(shown.names('Runs')).toEqual(['run 3', 'run 1', 'run 9', 'run 2']);
    const heads = shown.panel.node.querySelectorAll('h4');
    expect(Array.from(heads, head => head.textContent)).toEqual([
      'Active',
      'Today',
      expect.stringContaining('Jan')
    ]);
    expect(shown.text).toContain('it fell');
    expect(shown.text).toContain('behind others');
    expect(shown.text).toContain('16 s · ');
    shown.rows('Runs').forEach(one => one.click());
    expect(shown.done[0]).toBe(`run ${run(3).run_id}`);
  });

  it('tell runs of one name apart', async () => {
    const same = { name: 'train' };
    await show([ended(3, same), ended(2, same), ended(1, same)]);
    const names = [3, 2, 1].map(
      n => `train · ${run(n).run_id.split('-').pop()}`
    );
    expect(shown.names('Runs')).toEqual(names);
  });

  it('show the time against the limit, and it goes on', async () => {
    const client = new FakeRunClient();
    client.overview = () =>
      Promise.resolve(answerOf('RunOverview', { time_limit: 1800 }));
    const started = new Date(Date.now() - 252_000).toISOString();
    client.runs = [run(1, { started_at: started })];
    shown = new Shown(client);
    await shown.show();
    await until(() => /4:1\d \/ 30:00/.test(shown.text));
    const before = shown.rows('Runs')[0].textContent;
    await until(() => shown.rows('Runs')[0].textContent !== before);
    const bar = shown.panel.node.querySelector<HTMLElement>(
      '.jp-HyperPod-Progress > span'
    );
    expect(bar?.style.width).toMatch(/^14/);
  });

  it('are filtered by words and by state', async () => {
    await show([
      run(3, { name: 'alpha' }),
      ended(2, { name: 'beta' }),
      ended(1, { name: 'alphabet', state: 'failed' })
    ]);
    const field = shown.panel.node.querySelector('input');
    const type = (text: string) => {
      const set = Object.getOwnPropertyDescriptor(
        HTMLInputElement.prototype,
        'value'
      )?.set;
      set?.call(field, text);
      field?.dispatchEvent(new Event('input', { bubbles: true }));
    };
    press(shown.rows('Runs')[0], '/');
    expect(document.activeElement).toBe(field);
    type('alpha');
    await until(() => shown.rows('Runs').length === 2);
    shown.button('Show only failed runs')?.click();
    await until(() => shown.rows('Runs').length === 1);
    expect(shown.names('Runs')).toEqual(['alphabet']);
    type('beta');
    await until(() => shown.text.includes('No run matches'));
    press(field, 'Escape');
    await until(() => shown.rows('Runs').length === 3);
  });

  it('have one tab stop, and keys that move, open and cancel', async () => {
    await show([run(3), run(2), ended(1)]);
    const stops = () =>
      shown.rows('Runs').filter(one => one.tabIndex === 0).length;
    expect(stops()).toBe(1);
    const [first, second] = shown.rows('Runs');
    first.focus();
    press(first, 'ArrowDown');
    await until(() => document.activeElement === second);
    expect(stops()).toBe(1);
    press(second, 'End');
    await until(() => document.activeElement === shown.rows('Runs')[2]);
    press(document.activeElement, 'Delete');
    // It has ended.
    expect(shown.done).toEqual([]);
    press(document.activeElement, 'Home');
    await until(() => document.activeElement === first);
    press(first, 'Delete');
    expect(shown.done).toEqual(['cancel run 3']);
  });

  it('are chosen with Shift and Ctrl, and cancelled together', async () => {
    await show([run(4), run(3), run(2), ended(1)]);
    const [first, second, third, last] = shown.rows('Runs');
    const click = (on: HTMLElement, keys: MouseEventInit) =>
      on.dispatchEvent(new MouseEvent('click', { bubbles: true, ...keys }));
    click(first, { ctrlKey: true });
    await until(() => shown.text.includes('1 selected'));
    click(third, { shiftKey: true });
    await until(() => shown.text.includes('3 selected'));
    click(second, { ctrlKey: true });
    await until(() => shown.text.includes('2 selected'));
    click(last, { ctrlKey: true });
    await until(() => shown.text.includes('3 selected'));
    expect(first.getAttribute('aria-pressed')).toBe('true');
    shown.button('Cancel 2')?.click();
    expect(shown.done).toEqual(['cancel run 4, run 2']);
    press(last, 'Escape');
    await until(() => !shown.text.includes('selected'));
  });

  it('have a context menu', async () => {
    await show([run(2), ended(1)]);
    const open = (on: HTMLElement) =>
      on.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true }));
    open(shown.rows('Runs')[0]);
    expect(menuEntries().map(one => one.textContent)).toEqual([
      'Open',
      'Run Again…',
      'Copy Run Id',
      'Cancel Run…'
    ]);
    press(document.querySelector('.lm-Menu'), 'Escape', { keyCode: 27 });
    await until(() => menuEntries().length === 0);
    open(shown.rows('Runs')[1]);
    expect(menuEntries()).toHaveLength(4);
    press(document.querySelector('.lm-Menu'), 'Escape', { keyCode: 27 });
    await until(() => menuEntries().length === 0);
  });

  it('offer what has a command, and count all', async () => {
    await show([run(1)], { newRun: null, runAgain: null });
    expect(shown.button('New run')).toBeUndefined();
    expect(shown.button('Run again')).toBeUndefined();
    shown.button('Cancel run')?.click();
    shown.button('All (1)')?.click();
    expect(shown.done).toEqual(['cancel run 1', 'all runs']);
  });

  it('appear when they are sent', async () => {
    await show([run(1)]);
    shown.runClient.runs = [run(2), run(1)];
    await shown.runs.get(run(2).run_id);
    await until(() => shown.names('Runs')[0] === 'run 2');
  });

  it('teach the first step where there are none', async () => {
    await show([]);
    await until(() => shown.text.includes('%%hyperpod'));
    shown.button('New run')?.click();
    expect(shown.done).toEqual(['new null']);
  });

  it('say in words that the server is gone', async () => {
    const client = new FakeRunClient();
    client.failure = ApiError.local('network', 'TypeError: failed to fetch');
    shown = new Shown(client);
    await shown.show();
    const alert = () => shown.panel.node.querySelector('[role="alert"]');
    await until(() => alert() !== null);
    expect(alert()?.textContent).toContain('does not respond');
    expect(alert()?.textContent).toContain('Try again');
  });
});
