import { nullTranslator } from '@jupyterlab/translation';

import { bodyOf, EMPTY_DRAFT } from '../draft';
import { fieldsOf, PARAMETERS } from '../fields';
import { fileSource } from '../source';
import { readTexts, textsOf } from '../values';
import { SCHEMA } from './schema';

const trans = nullTranslator.load('hyperpod_jlab');
const fields = fieldsOf({
  ...SCHEMA,
  $defs: {
    ...SCHEMA.$defs,
    NotebookSource: {
      properties: {
        parameters: { type: 'object', additionalProperties: true }
      }
    }
  }
});
const typed = 'lr=0.1\non=true\nname=a b\nlayers=[1, 2]\ntext="3"\nempty=';
const values = {
  lr: 0.1,
  on: true,
  name: 'a b',
  layers: [1, 2],
  text: '3',
  empty: ''
};

function sourceOf(kind: string, cloneOf: string | null): unknown {
  const draft = { ...EMPTY_DRAFT, texts: { [PARAMETERS]: typed } };
  const source = fileSource('work/train', { kind }, { cloneOf });
  return bodyOf('id', source, fields, draft, trans).spec.source;
}

describe('the parameters of a notebook', () => {
  it('are JSON or text, and are written as they were typed', () => {
    const { problems, spec } = readTexts(
      fields,
      { [PARAMETERS]: typed },
      trans
    );
    expect(problems).toEqual({});
    expect(spec).toEqual({ source: { parameters: values } });
    const again = textsOf(fields, spec)[PARAMETERS];
    expect(readTexts(fields, { [PARAMETERS]: again }, trans).spec).toEqual(
      spec
    );
  });

  it('need a value', () => {
    const { problems } = readTexts(fields, { [PARAMETERS]: 'lr' }, trans);
    expect(problems[PARAMETERS]).toContain('lr=VALUE');
  });

  it.each(['12345678901234567890', '-1e400'])(
    'are not changed silently: %s',
    number => {
      const texts = { [PARAMETERS]: `seed=${number}` };
      const { problems } = readTexts(fields, texts, trans);
      expect(problems[PARAMETERS]).toBe(`The number ${number} is too large.`);
    }
  );

  it('go with a notebook that is captured anew, and with nothing else', () => {
    const parameters = values;
    expect(sourceOf('notebook', null)).toEqual({
      kind: 'notebook',
      parameters
    });
    expect(sourceOf('notebook', 'earlier')).toEqual({ kind: 'notebook' });
    expect(sourceOf('script', null)).toEqual({ kind: 'script' });
  });
});
