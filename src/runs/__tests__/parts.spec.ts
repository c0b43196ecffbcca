import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { ApiError } from '../../api';
import { bytesText } from '../../components/words';
import { resourceCharts } from '../chartData';
import { sortedFiles } from '../codeTab';
import { failedLines } from '../failureCard';
import { settingsOf } from '../settingsTab';
import { phasesOf, phaseText } from '../timeLine';
import { clockText } from '../words';
import { FakeRunClient, run } from './fakes';

const trans = nullTranslator.load('hyperpod_jlab');
const GIB = 2 ** 30;

describe('Charts of resources', () => {
  const series = (kind: string, parts: Record<string, unknown>) => ({
    kind,
    values: [GIB, null, 2 * GIB],
    last: 2 * GIB,
    peak: 3 * GIB,
    ...parts
  });
  const found = answerOf('RunResources', {
    attempt: 1,
    begin: '2026-01-01T00:00:00.000Z',
    step_s: 10,
    nodes: [0, 1],
    series: [
      series('memory', { node_rank: 0 }),
      series('memory', { node_rank: 0, rank: 0 }),
      series('memory', { node_rank: 1, rank: 2 }),
      series('gpu', { node_rank: 1, gpu: 3, values: [5, 6, 7], peak: 7 })
    ]
  });

  it('says how much memory each rank uses', () => {
    const charts = resourceCharts(found, 'ranks', ['a', 'b'], trans);
    const memory = charts.find(chart => chart.name === 'memory');
    expect(memory?.unit).toBe('GiB');
    expect(memory?.curves.map(one => one.label)).toEqual(['Rank 0', 'Rank 2']);
    expect(memory?.curves[1].last).toBe('2 GiB');
    expect(memory?.curves[1].peak).toBe('3 GiB');
    expect(memory?.curves[1].values).toEqual([1, null, 2]);
    const begin = Date.parse('2026-01-01T00:00:00.000Z') / 1000;
    expect(memory?.times).toEqual([begin, begin + 10, begin + 20]);
  });

  it('names nodes as a whole, and GPUs in both', () => {
    const charts = resourceCharts(found, 'nodes', ['a', 'b'], trans);
    expect(charts.map(chart => [chart.name, chart.curves[0].label])).toEqual([
      ['gpu', 'GPU 3'],
      ['memory', 'a']
    ]);
    expect(charts[0].top).toBe(100);
  });

  it('has none where nothing was sampled', () => {
    const nothing = answerOf('RunResources');
    expect(resourceCharts(nothing, 'ranks', [], trans)).toEqual([]);
  });
});

describe('Time line', () => {
  const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`;

  it('has the phases of each attempt', () => {
    const attempts = [
      { number: 1, state: 'failed', started_at: at(1), ended_at: at(3) },
      { number: 2, state: 'running', started_at: at(4) }
    ];
    const overview = answerOf('RunOverview', {
      attempts: [
        { number: 1, ranks_started_at: at(2) },
        { number: 2, ranks_started_at: at(5) }
      ]
    });
    const shown = run(1, { submitted_at: at(0), attempts });
    const phases = phasesOf(shown, overview);
    expect(phases.map(({ begin, end, key }) => [key, begin, end])).toEqual([
      ['1 queued', at(0), at(1)],
      ['1 setup', at(1), at(2)],
      ['1 running', at(2), at(3)],
      ['2 queued', at(3), at(4)],
      ['2 setup', at(4), at(5)],
      ['2 running', at(5), null]
    ]);
  });

  it('says what the node does before its ranks start', () => {
    const attempts = [{ number: 1, state: 'running', started_at: at(1) }];
    const reason = 'building the environment';
    const building = run(1, { attempts, reason, reason_code: 'setup' });
    const texts = phasesOf(building, null).map(phase =>
      phaseText(phase, building, trans)
    );
    expect(texts).toEqual(['Queued', 'Set up: building the environment']);
  });

  it('only waits before the first attempt', () => {
    const waiting = run(1, { state: 'waiting', submitted_at: at(0) });
    expect(phasesOf(waiting, null)).toHaveLength(1);
    expect(phasesOf(waiting, null)[0].end).toBeNull();
  });
});

describe('Files of a run', () => {
  it('are the user’s first, what was submitted before the rest', () => {
    const files = [
      'launcher.py',
      'code/hyperpod_runtime/runner.py',
      'code/cells.json',
      'work/data.bin',
      'work/train.py',
      'code/a.ipynb/cell-10.py',
      'code/a.ipynb/cell-2.py'
    ].map(path => ({ path, size: 1 }));
    const { added, own } = sortedFiles(files, 'train.py');
    expect(own.map(file => file.path)).toEqual([
      'code/a.ipynb/cell-2.py',
      'code/a.ipynb/cell-10.py',
      'work/train.py',
      'work/data.bin'
    ]);
    expect(added).toHaveLength(3);
  });
});

describe('Settings of a run', () => {
  it('are those that say something, with names and units', () => {
    const spec = {
      format: 1,
      source: { kind: 'command', command: 'true' },
      name: null,
      time_limit: 600,
      resources: { nodes: 2, gpus_per_node: null, memory: 64 * GIB },
      environment: { variables: { A: '1' }, secrets: { TOKEN: '' } },
      files: { project: false, include: [] }
    };
    const found = settingsOf(spec, trans);
    expect(found.map(({ name, value }) => `${name}: ${value}`)).toEqual([
      'Source: command',
      'Command: true',
      'Time limit: 10 min',
      'Nodes: 2',
      'Memory per node: 64 GiB',
      'Environment variables: A=1',
      'Secrets: TOKEN',
      'Include project files: no'
    ]);
  });
});

describe('Lines that failed', () => {
  const text = ['1', '2', '3', '4', '5', '6', '7'].join('\n');

  it('are those of the cell', async () => {
    const client = new FakeRunClient();
    client.sent = [answerOf('SentCellText', { number: 2, text })];
    const error = { cell: 2, line: 4, traceback: '' };
    const found = await failedLines(client, 'x', error);
    expect(found).toEqual({
      first: 2,
      failed: 4,
      lines: ['2', '3', '4', '5', '6']
    });
  });

  it('are those of the last frame in the run’s own files', async () => {
    const client = new FakeRunClient();
    client.codeFile = (_, path) => Promise.resolve({ name: path, text });
    const traceback = `File "/fsx/runs/x/work/train.py", line 1, in <module>
File "/fsx/runs/x/work/lib/net.py", line 7, in step
File "/usr/lib/python3/json.py", line 9, in loads`;
    const error = { cell: null, line: null, traceback };
    const found = await failedLines(client, 'x', error);
    expect(found).toEqual({ first: 5, failed: 7, lines: ['5', '6', '7'] });
  });

  it('are none where the file can’t be read', async () => {
    const client = new FakeRunClient();
    client.codeFile = () =>
      Promise.reject(ApiError.local('no_such_file', 'gone', 404));
    const traceback = 'File "/fsx/runs/x/work/train.py", line 1';
    const error = { cell: null, line: null, traceback };
    expect(await failedLines(client, 'x', error)).toBeNull();
  });
});

describe('Words', () => {
  it('have units', () => {
    expect(bytesText(0)).toBe('0 B');
    expect(bytesText(1.5 * GIB)).toBe('1.5 GiB');
    expect(clockText(252)).toBe('4:12');
    expect(clockText(3852)).toBe('1:04:12');
  });
});
