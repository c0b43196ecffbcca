import { TranslationBundle } from '@jupyterlab/translation';

import { IField } from './fields';
import { IFinding } from './types';
import { Texts } from './values';

/** Said of a file that is not saved; made here, as the server knows nothing of it. */
export const NOT_SAVED = 'not_saved';

/**
 * What a button beside a finding does.
 */
export interface IFix {
  readonly label: string;
  /** Fields that get other values. */
  readonly set: Readonly<Record<string, string>>;
  /** Save the file. */
  readonly save?: boolean;
}

/** What can be done about a finding with one click; null when only its author knows. */
export function fixOf(
  finding: IFinding,
  trans: TranslationBundle
): IFix | null {
  switch (finding.code) {
    case NOT_SAVED:
      return { label: trans.__('Save file'), set: {}, save: true };
    case 'too_many_nodes':
      return {
        label: trans.__('Use one node'),
        set: { 'resources.nodes': '1' }
      };
    case 'too_many_processes':
      return {
        label: trans.__('Use one node and one process'),
        set: { 'resources.nodes': '1', 'resources.processes_per_node': '1' }
      };
    case 'not_enough_gpus':
      return {
        label: trans.__('Request none'),
        set: {
          'resources.gpus_per_node': '',
          'resources.accelerators.kind': '',
          'resources.accelerators.type': '',
          'resources.accelerators.count': ''
        }
      };
    case 'torch_missing':
      return {
        label: trans.__('Use python'),
        set: { launcher: 'python' }
      };
    case 'ignored':
    case 'unsupported':
      return finding.field === null || finding.field.startsWith('source')
        ? null
        : { label: trans.__('Clear field'), set: { [finding.field]: '' } };
    default:
      return null;
  }
}

/** What a fix types into which fields: where it names a group, into all of that. */
export function textsOfFix(fix: IFix, fields: readonly IField[]): Texts {
  const texts: Record<string, string> = {};
  for (const [path, text] of Object.entries(fix.set)) {
    const inside = fields.filter(
      field => field.path === path || field.path.startsWith(`${path}.`)
    );
    inside.forEach(field => (texts[field.path] = text));
  }
  return texts;
}
