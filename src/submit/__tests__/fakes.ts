import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { IClusterClient } from '../../clusters/client';
import { ICellsClient } from '../../notebook/client';
import { IRunClient } from '../../runs/client';
import { IRun } from '../../runs/types';
import { ISubmitClient } from '../client';
import { SubmitHistory } from '../history';
import { ILast, IPreset, ISubmitMemory } from '../memory';
import { SubmitModel } from '../model';
import { ISubmitOptions } from '../options';
import { fileSource, ISubmitSource } from '../source';
import { Choices, IFinding, IPreview, ISubmitBody } from '../types';
import { SCHEMA } from './schema';

export const trans = nullTranslator.load('hyperpod_jlab');

export function runOf(runId: string, parts: object = {}): IRun {
  return answerOf('Run', {
    run_id: runId,
    name: 'train',
    cluster: 'local',
    state: 'running',
    own: true,
    ...parts
  });
}

function partOf(title: string, text: string): object {
  return { title, language: 'python', text, notes: [] };
}

export function previewOf(
  findings: readonly Partial<IFinding>[] = []
): IPreview {
  return answerOf('Preview', {
    name: 'train',
    rendered: { name: 'local.json', text: '{}' },
    command: ['python3', '$BUNDLE/code/main.py'],
    files: ['code/main.py'],
    parts: [partOf('Cell 1', 'x = 1')],
    findings
  });
}

/** A server that answers as it is told, and knows what it was asked. */
export class FakeServer implements ISubmitClient {
  readonly previews: ISubmitBody[] = [];
  readonly submits: ISubmitBody[] = [];
  answerPreview: () => Promise<IPreview> = () => Promise.resolve(previewOf());
  answerSubmit: (body: ISubmitBody) => Promise<IRun> = body =>
    Promise.resolve(runOf(body.run_id, { cluster: body.cluster }));

  schema(): Promise<Readonly<Record<string, unknown>>> {
    return Promise.resolve(SCHEMA);
  }

  choices(cluster: string): Promise<Choices> {
    const known: Choices =
      cluster === 'ml' ? { queue: ['gpu'], account: ['research'] } : {};
    return Promise.resolve(known);
  }

  preview(body: ISubmitBody): Promise<IPreview> {
    this.previews.push(body);
    return this.answerPreview();
  }

  submit(body: ISubmitBody): Promise<IRun> {
    this.submits.push(body);
    return this.answerSubmit(body);
  }
}

/** Settings in memory. */
export class FakeMemory implements ISubmitMemory {
  readonly lasts = new Map<string, ILast>();
  kept: IPreset[] = [];

  last(path: string): Promise<ILast | null> {
    return Promise.resolve(this.lasts.get(path) ?? null);
  }

  lastCluster(): Promise<string | null> {
    return Promise.resolve([...this.lasts.values()].pop()?.cluster ?? null);
  }

  remember(path: string, last: ILast): Promise<void> {
    this.lasts.set(path, last);
    return Promise.resolve();
  }

  presets(): Promise<readonly IPreset[]> {
    return Promise.resolve(this.kept);
  }

  savePreset(preset: IPreset): Promise<void> {
    this.kept = [...this.kept, preset];
    return Promise.resolve();
  }

  removePreset(preset: IPreset): Promise<void> {
    this.kept = this.kept.filter(one => one !== preset);
    return Promise.resolve();
  }
}

export const clusters: IClusterClient = {
  list: () => Promise.reject(new Error('AWS is not to be asked')),
  cluster: () => Promise.reject(new Error('AWS is not to be asked')),
  governance: () => Promise.reject(new Error('AWS is not to be asked')),
  overview: () => Promise.resolve(answerOf('ClusterOverview')),
  configured: () =>
    Promise.resolve(
      ['local', 'ml'].map(name =>
        answerOf('Cluster', {
          name,
          orchestrator: name === 'ml' ? 'slurm' : 'local',
          default: name === 'local',
          state: 'up'
        })
      )
    ),
  table: () =>
    Promise.resolve({ rows: [{ name: 'gpu' }], next: null, total: 1 }),
  act: () => Promise.resolve([]),
  queues: () => Promise.resolve(['gpu'])
};

/** Cells on the screen, the second of which is selected. */
export function cellSource(text = 'y = 2'): ISubmitSource {
  const cells = [
    { id: 'a', number: 1, text: 'x = 1' },
    { id: 'b', number: 2, text }
  ];
  const view = () => ({ document: { cells: [] }, cells });
  const spec = { kind: 'notebook', path: 'train.ipynb' };
  return fileSource('work/train.ipynb', spec, { cellIds: ['b'], view });
}

/** A form on a server, ready to be typed into. */
export async function formOn(
  server: FakeServer,
  options: Partial<ISubmitOptions> & {
    memory?: FakeMemory;
    cells?: ICellsClient;
    runClient?: Partial<IRunClient>;
  } = {}
): Promise<SubmitModel> {
  const memory = options.memory ?? new FakeMemory();
  const cells = options.cells ?? {
    ofNotebook: () => Promise.resolve({ runs: [], cells: [] }),
    ofRun: () => Promise.resolve({ notebook: null, path: null, cells: [] })
  };
  const runClient = (options.runClient ?? {}) as IRunClient;
  const model = new SubmitModel({
    source: cellSource(),
    client: server,
    clusters,
    history: new SubmitHistory({ cells, memory, runClient }),
    trans,
    delay: 5,
    pauses: [1, 1],
    ...options,
    memory
  });
  await model.load();
  await settled(model);
  return model;
}

/** Wait until no preview is waited for. */
export async function settled(model: SubmitModel): Promise<void> {
  for (let turn = 0; turn < 200; turn++) {
    await new Promise(resolve => setTimeout(resolve, 5));
    if (!model.busy) {
      return;
    }
  }
  throw new Error('the preview does not come');
}
