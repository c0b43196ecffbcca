import { ApiError, NETWORK_ERROR } from '../../api';
import { NOT_SAVED } from '../fixes';
import { withoutName } from '../memory';
import { fileSource } from '../source';
import {
  cellSource,
  FakeMemory,
  FakeServer,
  formOn,
  previewOf,
  runOf,
  settled
} from './fakes';

const PATH = 'work/train.ipynb';

describe('the submit form', () => {
  it('asks what would run with the cells on the screen', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    expect(server.previews).toHaveLength(1);
    expect(server.previews[0]).toMatchObject({
      cluster: 'local',
      base: 'work',
      notebook: { cells: [] },
      spec: {
        source: { kind: 'notebook', path: 'train.ipynb', cell_ids: ['b'] }
      }
    });
    expect(model.choices).toEqual({});
  });

  it('proposes what the chosen cluster knows', async () => {
    const model = await formOn(new FakeServer());
    model.setCluster('ml');
    await settled(model);
    expect(model.choices).toEqual({ queue: ['gpu'], account: ['research'] });
    model.setCluster('local');
    await settled(model);
    expect(model.choices).toEqual({});
  });

  it('begins with the cluster and queue that the user prefers', async () => {
    const preferences = { defaultCluster: 'ml', defaultQueue: 'gpu' };
    const model = await formOn(new FakeServer(), { preferences });
    expect(model.draft.cluster).toBe('ml');
    expect(model.texts.queue).toBe('gpu');
    model.begin({ cluster: 'local', spec: {} });
    expect(model.texts.queue).toBeUndefined();
  });

  it('prefers no queue of a cluster that is not there', async () => {
    const preferences = { defaultCluster: 'gone', defaultQueue: 'gpu' };
    const model = await formOn(new FakeServer(), { preferences });
    expect(model.draft.cluster).toBe('local');
    expect(model.texts.queue).toBeUndefined();
  });

  it('proposes nothing when the cluster does not answer', async () => {
    const server = new FakeServer();
    server.choices = () => Promise.reject(new Error('down'));
    const model = await formOn(server);
    expect(model.choices).toEqual({});
  });

  it('asks once for what is typed fast, and for nothing that is wrong', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    model.set({ 'resources.nodes': '1' });
    model.set({ 'resources.nodes': '12' });
    await settled(model);
    expect(server.previews).toHaveLength(2);
    expect(server.previews[1].spec).toMatchObject({ resources: { nodes: 12 } });
    model.set({ 'resources.nodes': '12x' });
    await settled(model);
    expect(server.previews).toHaveLength(2);
    expect(Object.keys(model.problems)).toEqual(['resources.nodes']);
    expect(await model.submit()).toBeNull();
    expect(server.submits).toEqual([]);
  });

  it('keeps the preview of what was typed before, but not its findings', async () => {
    const server = new FakeServer();
    server.answerPreview = () =>
      Promise.resolve(
        previewOf([{ level: 'error', code: 'x', message: 'bad', field: null }])
      );
    const model = await formOn(server);
    expect(model.findings).toHaveLength(1);
    model.set({ 'resources.nodes': '0' });
    expect(model.findings).toEqual([]);
    expect(model.preview).not.toBeNull();
    expect(model.isStale).toBe(true);
    model.set({ 'resources.nodes': '1' });
    await settled(model);
    expect(model.findings).toHaveLength(1);
  });

  it('keeps the name out of what a preset remembers', async () => {
    const memory = new FakeMemory();
    const model = await formOn(new FakeServer(), { memory });
    model.set({ name: 'mine', 'resources.nodes': '2' });
    await model.savePreset('two');
    expect(memory.kept[0].spec).toEqual({ resources: { nodes: 2 } });
    expect(withoutName({ cluster: null, spec: { name: 'a' } }).spec).toEqual(
      {}
    );
  });

  it('sends the same run again when no answer comes', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    let tries = 0;
    server.answerSubmit = body =>
      ++tries < 3
        ? Promise.reject(ApiError.local(NETWORK_ERROR, 'gone'))
        : Promise.resolve(runOf(body.run_id));
    const run = await model.submit();
    const ids = server.submits.map(body => body.run_id);
    expect(ids).toEqual([run?.run_id, run?.run_id, run?.run_id]);
  });

  it('keeps the run id until something else is to be sent', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    server.answerSubmit = () =>
      Promise.reject(ApiError.local(NETWORK_ERROR, 'x'));
    expect(await model.submit()).toBeNull();
    expect(await model.submit()).toBeNull();
    const ids = new Set(server.submits.map(body => body.run_id));
    expect(ids.size).toBe(1);
    model.set({ name: 'other' });
    await model.submit();
    const last = server.submits[server.submits.length - 1];
    expect(ids.has(last.run_id)).toBe(false);
    expect(model.error?.code).toBe(NETWORK_ERROR);
  });

  it('tells a refusal at its field', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    const detail = { field: 'spec.time_limit', problems: [] };
    server.answerSubmit = () =>
      Promise.reject(
        new ApiError(
          {
            code: 'x',
            message: 'spec.time_limit: too long',
            hint: null,
            detail
          },
          400
        )
      );
    expect(await model.submit()).toBeNull();
    expect(model.problems).toEqual({ time_limit: 'too long' });
    expect(server.submits).toHaveLength(1);
    model.set({ time_limit: '1h' });
    expect(model.problems).toEqual({});
  });

  it('shows the worst finding first, and does what its button says', async () => {
    const server = new FakeServer();
    server.answerPreview = () =>
      Promise.resolve(
        previewOf([
          { level: 'info', code: 'ignored', message: 'i', field: 'slurm' },
          { level: 'error', code: 'many', message: 'e', field: 'name' }
        ])
      );
    const model = await formOn(server);
    expect(model.findings.map(one => one.level)).toEqual(['error', 'info']);
    model.set({ 'slurm.flags': 'exclusive' });
    await model.fix({ label: '', set: { slurm: '' } });
    expect(model.texts['slurm.flags']).toBe('');
  });

  it('makes a smoke run of whatever is typed in', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    model.set({ 'resources.nodes': '8', max_restarts: '3' });
    model.choose({ smoke: true });
    await model.submit();
    expect(server.submits[0].spec).toMatchObject({
      resources: { nodes: 1 },
      time_limit: '2m'
    });
    expect(server.submits[0].spec).not.toHaveProperty('max_restarts');
    model.choose({ smoke: false });
    expect(model.texts['resources.nodes']).toBe('8');
  });

  it('runs the whole notebook when that is wanted', async () => {
    const server = new FakeServer();
    const model = await formOn(server);
    model.choose({ whole: true });
    await model.submit();
    expect(server.submits[0].spec.source).not.toHaveProperty('cell_ids');
  });

  it('names no folder for a file in the root', async () => {
    const server = new FakeServer();
    const source = fileSource('a.py', { kind: 'script', path: 'a.py' });
    await formOn(server, { source });
    expect(server.previews[0].base).toBeUndefined();
  });

  it('sends the values of secrets beside the spec', async () => {
    const server = new FakeServer();
    const memory = new FakeMemory();
    const model = await formOn(server, { memory });
    model.set({ 'environment.secrets': 'TOKEN\nKEY=arn:x' });
    expect(model.openSecrets).toEqual(['TOKEN']);
    model.setSecret('TOKEN', 's3cret');
    await model.submit();
    expect(server.submits[0].secrets).toEqual({ TOKEN: 's3cret' });
    const kept = JSON.stringify([...memory.lasts, server.submits[0].spec]);
    expect(kept).not.toContain('s3cret');
  });
});

describe('settings', () => {
  it('begin as in the last run of the file', async () => {
    const memory = new FakeMemory();
    const first = await formOn(new FakeServer(), { memory });
    first.setCluster('ml');
    first.set({ 'resources.nodes': '4' });
    await first.submit();
    const model = await formOn(new FakeServer(), { memory });
    expect(model.draft.cluster).toBe('ml');
    expect(model.texts).toEqual({ 'resources.nodes': '4' });
    model.begin(null);
    expect(model.draft.cluster).toBe('local');
    expect(model.texts).toEqual({});
    // Another file begins on the same cluster, unless the user prefers one.
    const source = { ...cellSource(), path: 'work/other.ipynb' };
    const other = await formOn(new FakeServer(), { memory, source });
    expect(other.draft.cluster).toBe('ml');
    expect(other.texts).toEqual({});
    const preferences = { defaultCluster: 'local', defaultQueue: '' };
    const named = await formOn(new FakeServer(), {
      memory,
      source,
      preferences
    });
    expect(named.draft.cluster).toBe('local');
  });

  it('begin with the whole notebook where that was asked for', async () => {
    const source = cellSource();
    const model = await formOn(new FakeServer(), { source, isWhole: true });
    expect(model.draft.whole).toBe(true);
  });

  it('are kept as presets of the folder', async () => {
    const memory = new FakeMemory();
    const model = await formOn(new FakeServer(), { memory });
    model.set({ 'resources.nodes': '4' });
    await model.savePreset('big');
    expect(model.presets).toEqual([
      {
        name: 'big',
        project: 'work',
        cluster: 'local',
        spec: { resources: { nodes: 4 } }
      }
    ]);
    await model.removePreset(model.presets[0]);
    expect(model.presets).toEqual([]);
  });

  it('are compared with the last run, and so is the code', async () => {
    const cells = [{ id: 'b', number: 2, text: 'y = 2' }];
    const view = jest.fn(() => ({ document: { cells: [] }, cells }));
    const model = await formOn(new FakeServer(), {
      source: { ...cellSource(), view },
      cells: {
        ofNotebook: () =>
          Promise.resolve({ runs: [runOf('old-1')], cells: [] }),
        ofRun: () =>
          Promise.resolve({
            notebook: null,
            path: null,
            cells: [{ number: 2, id: 'b', checksum: null, text: 'y = 1' }]
          })
      },
      runClient: {
        get: () => Promise.resolve(runOf('old-1', { cluster: 'ml' })),
        spec: () => Promise.resolve({ resources: { nodes: 2 } })
      }
    });
    expect(model.changes).toMatchObject({
      runId: 'old-1',
      cluster: 'ml',
      settings: [{ before: '2', after: '' }],
      code: [{ number: 2, kind: 'changed' }]
    });
    const { changes } = model;
    const looks = view.mock.calls.length;
    expect(model.changes).toBe(changes);
    model.set({ 'resources.nodes': '3' });
    expect(model.changes?.settings[0].after).toBe('3');
    expect(model.changes?.code).toBe(changes?.code);
    expect(view).toHaveBeenCalledTimes(looks);
  });

  it('of a run that is cloned are compared with that run', async () => {
    const spec = { resources: { nodes: 2 } };
    const server = new FakeServer();
    const model = await formOn(server, {
      source: {
        ...fileSource('', { kind: 'notebook', path: 'train.ipynb' }),
        path: null,
        cloneOf: 'old-1',
        owner: 'bob'
      },
      start: { cluster: 'local', spec },
      runClient: {
        get: () => Promise.resolve(runOf('old-1')),
        spec: () => Promise.resolve(spec)
      }
    });
    expect(server.previews[0]).toMatchObject({ clone_of: 'old-1', spec });
    expect(server.previews[0]).not.toHaveProperty('notebook.cells');
    model.set({ 'resources.nodes': '3' });
    expect(model.changes).toMatchObject({
      runId: 'old-1',
      settings: [{ before: '2', after: '3' }],
      code: []
    });
  });

  it('are asked of no server that has lost the run', async () => {
    const model = await formOn(new FakeServer(), {
      cells: {
        ofNotebook: () => Promise.reject(new Error('gone')),
        ofRun: () => Promise.resolve({ notebook: null, path: null, cells: [] })
      }
    });
    expect(model.changes).toBeNull();
  });
});

describe('a file in an editor', () => {
  it('is said to run as it was saved, until it is', async () => {
    let dirty = true;
    const save = () => {
      dirty = false;
      return Promise.resolve();
    };
    const model = await formOn(new FakeServer(), {
      source: fileSource(
        'a.py',
        { kind: 'script', path: 'a.py' },
        { editor: { isDirty: () => dirty, save } }
      )
    });
    expect(model.findings.map(one => one.code)).toEqual([NOT_SAVED]);
    await model.fix({ label: '', set: {}, save: true });
    expect(model.findings).toEqual([]);
  });
});

describe('a form without a server', () => {
  it('says so, and can be asked again', async () => {
    const server = new FakeServer();
    const schema = server.schema.bind(server);
    server.schema = () => Promise.reject(ApiError.local(NETWORK_ERROR, 'no'));
    const model = await formOn(server);
    expect(model.ready).toBe(false);
    expect(model.error?.code).toBe(NETWORK_ERROR);
    server.schema = schema;
    await model.load();
    await settled(model);
    expect(model.ready).toBe(true);
    expect(model.error).toBeNull();
  });
});

it('a form remembers by path', async () => {
  const memory = new FakeMemory();
  const model = await formOn(new FakeServer(), { memory });
  await model.submit();
  expect([...memory.lasts.keys()]).toEqual([PATH]);
});
