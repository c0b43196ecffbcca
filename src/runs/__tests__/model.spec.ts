import { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { ApiError } from '../../api';
import { RUN_EVENT, RunsModel } from '../model';
import { IRun } from '../types';
import { FakeRunClient, run } from './fakes';

const owner = {};

function setUp(runs: IRun[]): {
  client: FakeRunClient;
  model: RunsModel;
  tell: (one: IRun) => void;
} {
  const client = new FakeRunClient();
  client.runs = runs;
  const events = new Signal<object, Event.Emission>(owner);
  const model = new RunsModel({ client, events });
  const tell = (one: IRun): void =>
    events.emit({
      schema_id: RUN_EVENT,
      run_id: one.run_id,
      state: one.state,
      parent: one.parent
    });
  return { client, model, tell };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}

describe('RunsModel', () => {
  it('asks for nothing before it is started', async () => {
    const { client, model, tell } = setUp([run(1)]);
    tell(run(1));
    await pause(300);
    expect(client.calls).toEqual([]);
    model.dispose();
  });

  it('lists runs newest first, without the children of arrays', async () => {
    const child = run(3, { parent: run(2).run_id });
    const { model } = setUp([child, run(1), run(2)]);
    await model.refresh();
    expect(model.loaded).toBe(true);
    expect(model.runs.map(item => item.name)).toEqual(['run 2', 'run 1']);
    model.dispose();
  });

  it('reads a run anew when an event tells of it, and says what changed', async () => {
    const { client, model, tell } = setUp([run(2), run(1)]);
    await model.refresh();
    const changes: string[] = [];
    model.stateChanged.connect((_, change) =>
      changes.push(`${change.before} to ${change.run.state}`)
    );
    client.runs = [run(2), run(1, { state: 'failed' })];
    tell(client.runs[1]);
    tell(client.runs[1]);
    await pause(500);
    expect(client.calls.slice(1)).toEqual([`get ${run(1).run_id}`]);
    expect(changes).toEqual(['running to failed']);
    expect(model.active.map(item => item.name)).toEqual(['run 2']);
    model.dispose();
  });

  it('counts no run of another user among those that wait or run', async () => {
    const { model } = setUp([run(2, { own: false }), run(1)]);
    await model.refresh();
    expect(model.runs).toHaveLength(2);
    expect(model.active.map(item => item.name)).toEqual(['run 1']);
    model.dispose();
  });

  it('answers many events with one list', async () => {
    const many = Array.from({ length: 10 }, (_, at) => run(at));
    const { client, model, tell } = setUp(many);
    await model.refresh();
    many.forEach(tell);
    await pause(500);
    expect(client.calls).toEqual(['list', 'list']);
    model.dispose();
  });

  it('pages to older runs, and forgets those that are gone', async () => {
    const many = Array.from({ length: 60 }, (_, at) => run(59 - at));
    const { client, model } = setUp(many);
    await model.refresh();
    expect(model.runs).toHaveLength(50);
    expect(model.more).toBe(true);
    await model.loadMore();
    expect(model.runs).toHaveLength(60);
    expect(model.more).toBe(false);
    client.runs = many.slice(1);
    await model.refresh();
    expect(model.runs).toHaveLength(59);
    model.dispose();
  });

  it('sorts as the server does: by when a run was made, not when it was taken', async () => {
    const late = { submitted_at: '2026-01-01T09:00:00.000Z' };
    const never = { submitted_at: null };
    const { model } = setUp([run(3, never), run(2), run(1, late)]);
    await model.refresh();
    const names = model.runs.map(item => item.name);
    expect(names).toEqual(['run 3', 'run 2', 'run 1']);
    model.dispose();
  });

  it('keeps children and runs that came after the list was asked for', async () => {
    const child = run(2, {
      run_id: `${run(2).run_id}.0`,
      parent: run(2).run_id
    });
    const { client, model } = setUp([run(2), run(1)]);
    await model.refresh();
    const list = model.refresh();
    client.runs = [run(3), child, run(2), run(1)];
    await Promise.all([model.get(run(3).run_id), model.get(child.run_id)]);
    client.runs = [run(2), run(1)];
    await list;
    await model.refresh();
    expect(model.find(child.run_id)).toBeDefined();
    expect(model.find(run(3).run_id)).toBeDefined();
    model.dispose();
  });

  it('goes on behind the first page though a child is known', async () => {
    const many = Array.from({ length: 60 }, (_, at) => run(59 - at));
    const child = run(2, {
      run_id: `${run(2).run_id}.0`,
      parent: run(2).run_id
    });
    const { client, model } = setUp([child]);
    await model.get(child.run_id);
    client.runs = many;
    await model.refresh();
    expect(model.more).toBe(true);
    model.dispose();
  });

  it('says why older runs cannot be read, and reads them later', async () => {
    const many = Array.from({ length: 60 }, (_, at) => run(59 - at));
    const { client, model } = setUp(many);
    await model.refresh();
    client.failure = ApiError.local('network', 'down');
    await model.loadMore();
    expect(model.error?.code).toBe('network');
    client.failure = null;
    await Promise.all([model.loadMore(), model.loadMore()]);
    expect(model.error).toBeNull();
    expect(model.runs).toHaveLength(60);
    expect(client.calls).toEqual(['list', 'list 50', 'list 50']);
    model.dispose();
  });

  it('says why the list cannot be read, and keeps what it knows', async () => {
    const { client, model } = setUp([run(1)]);
    await model.refresh();
    client.failure = ApiError.local('network', 'down');
    await model.refresh();
    expect(model.error?.code).toBe('network');
    expect(model.runs).toHaveLength(1);
    client.failure = null;
    await model.refresh();
    expect(model.error).toBeNull();
    model.dispose();
  });

  it('does to a run what it is told', async () => {
    const { client, model } = setUp([run(1)]);
    await model.act(run(1).run_id, 'cancel');
    expect(client.calls[0]).toBe(`cancel ${run(1).run_id}`);
    expect(model.find(run(1).run_id)?.name).toBe('run 1');
    model.dispose();
  });
});
