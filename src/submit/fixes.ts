import { TranslationBundle } from '@jupyterlab/translation';

import { IField } from './fields';
import { IFinding } from './types';
import { textOf, Texts } from './values';

/** Said of a file that is not saved; made here, as the server knows nothing of it. */
export const NOT_SAVED = 'not_saved';

/**
 * What a button beside a finding does.
 */
export interface IFix {
  readonly label: string;
  /** Fields that get other values. */
  readonly set: Readonly<Record<string, string | number | null>>;
  /** Save the file. */
  readonly save?: boolean;
}

/** What can be done about a finding with a click each. The server says what it would change in the spec. */
export function fixesOf(
  finding: IFinding,
  trans: TranslationBundle
): readonly IFix[] {
  switch (finding.code) {
    case NOT_SAVED:
      return [{ label: trans.__('Save file'), set: {}, save: true }];
    case 'ignored':
    case 'unsupported':
      return finding.field === null || finding.field.startsWith('source')
        ? []
        : [{ label: trans.__('Clear field'), set: { [finding.field]: null } }];
    default:
      return finding.fixes;
  }
}

/** What a fix types into which fields: where it names a group, into all of that. */
export function textsOfFix(fix: IFix, fields: readonly IField[]): Texts {
  const texts: Record<string, string> = {};
  for (const [path, value] of Object.entries(fix.set)) {
    const inside = fields.filter(
      field => field.path === path || field.path.startsWith(`${path}.`)
    );
    inside.forEach(field => (texts[field.path] = textOf(field, value)));
  }
  return texts;
}
