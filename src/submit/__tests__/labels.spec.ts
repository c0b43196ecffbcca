import { nullTranslator } from '@jupyterlab/translation';

import { fieldsOf } from '../fields';
import { labelOf } from '../labels';
import { SCHEMA } from './schema';

it('labels are translated once, not each time that they are shown', () => {
  const trans = { ...nullTranslator.load('hyperpod_jlab') };
  const translate = jest.fn((text: string) => `<${text}>`);
  trans.__ = translate;
  const fields = fieldsOf(SCHEMA);
  const nodes = fields.filter(field => field.path === 'resources.nodes');
  expect(nodes.map(field => labelOf(field, trans))).toEqual(['<Nodes>']);
  const once = translate.mock.calls.length;
  fields.forEach(field => labelOf(field, trans));
  expect(translate).toHaveBeenCalledTimes(once);
});
