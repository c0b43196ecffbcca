import { nullTranslator } from '@jupyterlab/translation';

import { fieldsOf } from '../fields';
import { oneWay, written } from '../quantities';
import { readTexts, textsOf } from '../values';
import { SCHEMA } from './schema';

const trans = nullTranslator.load('hyperpod_jlab');
const fields = fieldsOf(SCHEMA);

describe('the fields of a schema', () => {
  it('are those that can be typed in, with what they are', () => {
    const kinds = Object.fromEntries(
      fields.map(field => [field.path, field.kind])
    );
    expect(kinds).toEqual({
      name: 'text',
      args: 'lines',
      'resources.nodes': 'integer',
      'resources.accelerators.kind': 'choice',
      'resources.accelerators.count': 'integer',
      launcher: 'choice',
      'environment.variables': 'pairs',
      'environment.secrets': 'pairs',
      'environment.setup': 'long',
      time_limit: 'text',
      max_restarts: 'integer',
      auto_resume: 'truth',
      'slurm.flags': 'pairs',
      'kubernetes.patch': 'json'
    });
  });
});

describe('what is typed in', () => {
  const texts = {
    name: 'my run ',
    args: '--lr\n0.1\n',
    'resources.nodes': '2',
    'resources.accelerators.count': '1',
    launcher: 'python',
    'environment.variables': 'A=1=2\nEMPTY=',
    'environment.secrets': 'HF_TOKEN\nKEY=arn:x',
    'environment.setup': 'module load a\n',
    time_limit: '2h',
    max_restarts: '',
    auto_resume: 'false',
    'slurm.flags': 'exclusive\nmem=0\nconstraint=a=b',
    'kubernetes.patch': '{"spec": {"x": [1]}}'
  };
  const spec = {
    name: 'my run',
    args: ['--lr', '0.1'],
    resources: { nodes: 2, accelerators: { count: 1 } },
    launcher: 'python',
    environment: {
      variables: { A: '1=2', EMPTY: '' },
      secrets: { HF_TOKEN: '', KEY: 'arn:x' },
      setup: 'module load a\n'
    },
    time_limit: '2h',
    auto_resume: false,
    slurm: { flags: { exclusive: true, mem: 0, constraint: 'a=b' } },
    kubernetes: { patch: { spec: { x: [1] } } }
  };

  it('becomes a spec', () => {
    expect(readTexts(fields, texts, trans)).toEqual({ spec, problems: {} });
  });

  it('comes back from a spec', () => {
    const again = textsOf(fields, { ...spec, max_restarts: 0, args: [] });
    expect(readTexts(fields, again, trans).spec).toEqual({
      ...spec,
      args: undefined
    });
  });

  it('is told in words where it is wrong', () => {
    const { problems, spec: rest } = readTexts(
      fields,
      {
        'resources.nodes': '99',
        max_restarts: 'x',
        'kubernetes.patch': '[1]',
        name: 'n'
      },
      trans
    );
    expect(problems).toEqual({
      'resources.nodes': 'Must be at most 64.',
      max_restarts: 'Enter a whole number, such as 2.',
      'kubernetes.patch': 'Enter a JSON object: names and values in {}.'
    });
    expect(rest).toEqual({ name: 'n' });
  });
});

describe('quantities', () => {
  it.each([
    [300, '5m'],
    [7200, '2h'],
    [90, '90'],
    [172_800, '2d']
  ])('%d seconds are written %s', (value, text) => {
    expect(written('duration', value)).toBe(text);
  });

  it.each([
    ['300', '5m'],
    ['5m', '5m'],
    ['1h60m', '2h'],
    ['1-00:00:00', '1-00:00:00']
  ])('%s is the same as %s', (text, same) => {
    expect(oneWay('duration', text)).toBe(same);
  });

  it('are sizes too', () => {
    expect(written('size', 64 * 1024 ** 3)).toBe('64G');
    expect(oneWay('size', '1.5 GiB')).toBe('1536M');
    expect(oneWay('size', 'much')).toBe('much');
  });
});
