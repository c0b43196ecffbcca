import { nullTranslator } from '@jupyterlab/translation';

import { answerOf } from '../../__tests__/answers';
import { amountsText, devicesText } from '../devices';
import { jobColumns } from '../jobColumns';
import { queueColumns } from '../queueColumns';
import { IColumn } from '../serverTable';
import { devicesOf, TableRow, valueText } from '../types';

const trans = nullTranslator.load('hyperpod_jlab');

/** Devices as the server sends them. */
function device(
  name: string,
  type: string | null,
  total: number,
  free: number
): object {
  return {
    name,
    type,
    total,
    free,
    used: total - free,
    used_at: [],
    shared_at: [],
    first: null,
    accelerator: name === 'gpu'
  };
}

const QUEUE = {
  name: 'dev',
  state: 'up',
  default: true,
  usable: false,
  groups: ['ml', 'vision'],
  accounts: [],
  qos: ['high'],
  denied: [],
  nodes: 4,
  nodes_free: 1,
  slots: null,
  time_limit: 5400,
  default_time: 600,
  resources: [device('gpu', 'h100', 32, 12), device('shard', null, 16, 16)]
};

const JOB = {
  scheduler_id: '7',
  name: 'train',
  user: 'alice',
  mine: true,
  state: 'waiting',
  nodes: [],
  node_count: 4,
  resources: [device('gpu', 'h100', 8, 0), device('fpga', 'x', 1, 0)]
};

function cell(columns: readonly IColumn[], name: string, row: TableRow) {
  const column = columns.find(one => one.name === name);
  return column?.render ? column.render(row) : valueText(row[name]);
}

describe('the columns of queues', () => {
  const row = answerOf('Queue', QUEUE);
  const columns = queueColumns(trans);

  it.each([
    ['name', 'dev (default)'],
    ['nodes_free', '1 of 4'],
    ['slots_free', ''],
    ['accelerators_free', 'H100: 12 of 32'],
    ['time_limit', '1.5 h'],
    ['default_time', '10 min'],
    ['usable', 'not you (groups: ml, vision; QoS: high)']
  ])('%s', (name, text) => {
    expect(cell(columns, name, row)).toBe(text);
  });

  it('without rules are for everybody, and without a limit say so', () => {
    const free = { ...QUEUE, groups: [], qos: [], usable: null };
    const one = answerOf('Queue', { ...free, time_limit: null });
    expect(cell(columns, 'usable', one)).toBe('all users');
    expect(cell(columns, 'time_limit', one)).toBe('none');
  });
});

describe('the columns of jobs', () => {
  const row = answerOf('Job', JOB);
  const columns = jobColumns(trans, () => undefined);

  it.each([
    ['user', 'alice (you)'],
    ['nodes', '4'],
    ['accelerators', '8 × H100, 1 × fpga:x']
  ])('%s', (name, text) => {
    expect(cell(columns, name, row)).toBe(text);
  });

  it('name its nodes once it has some', () => {
    const one = answerOf('Job', { ...JOB, nodes: ['n1', 'n2'] });
    expect(cell(columns, 'nodes', one)).toBe('n1, n2');
  });
});

describe('devices', () => {
  it('are told apart from plain texts', () => {
    const row = answerOf('Queue', QUEUE);
    expect(devicesOf(row.resources)).toHaveLength(2);
    expect(devicesOf(row.groups)).toEqual([]);
    expect(devicesOf(null)).toEqual([]);
    expect(valueText(row.resources)).toBe('');
  });

  it('are counted in words', () => {
    const row = answerOf('Queue', QUEUE);
    const devices = devicesOf(row.resources);
    expect(devicesText(devices, trans)).toBe('H100: 12 of 32');
    expect(amountsText(devices)).toBe('32 × H100, 16 × shard');
  });
});
