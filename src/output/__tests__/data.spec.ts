import { decodeOutput } from '../data';

describe('an output’s data', () => {
  it('names a run', () => {
    expect(
      decodeOutput({ version: 1, run_id: '20261121-a1', name: ' train ' })
    ).toEqual({ kind: 'run', runId: '20261121-a1', name: 'train' });
    expect(decodeOutput({ version: 1, run_id: 'a.12' })).toEqual({
      kind: 'run',
      runId: 'a.12',
      name: 'a.12'
    });
  });

  it('of a newer version is told as such', () => {
    expect(decodeOutput({ version: 2 })).toEqual({ kind: 'newer' });
  });

  it.each([
    null,
    'text',
    [],
    {},
    { version: 1 },
    { version: '1', run_id: 'a' },
    { version: 1, run_id: 7 },
    { version: 1, run_id: '../x' },
    { version: 1, run_id: 'A' },
    { version: 1, run_id: 'a'.repeat(41) },
    { version: 1, run_id: 'a?b' }
  ])('%j names none', value => {
    expect(decodeOutput(value)).toEqual({ kind: 'malformed' });
  });
});
