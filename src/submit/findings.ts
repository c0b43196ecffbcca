import { TranslationBundle } from '@jupyterlab/translation';

import { ApiError, isRecord } from '../api';
import { IField } from './fields';
import { NOT_SAVED } from './fixes';
import { COST_NOT_CONFIRMED } from './overLimit';
import { ISubmitSource } from './source';
import { IFinding, IPreview, Level } from './types';

const ORDER: readonly Level[] = ['error', 'warning', 'info'];

/** What was found, the worst first: by the server, and here. */
export function findingsOf(
  preview: IPreview | null,
  error: ApiError | null,
  source: ISubmitSource,
  trans: TranslationBundle
): readonly IFinding[] {
  const found = [...(preview?.findings ?? []), ...refusals(error, preview)];
  if (source.editor?.isDirty()) {
    found.push({
      level: 'warning',
      code: NOT_SAVED,
      message: trans.__(
        '%1 has unsaved changes. The saved version will run.',
        source.label
      ),
      hint: null,
      field: null,
      fixes: []
    });
  }
  return found
    .map(mended)
    .sort(
      (one, other) => ORDER.indexOf(one.level) - ORDER.indexOf(other.level)
    );
}

/** What the user is asked when the run is sent does not keep it from being sent. */
function mended(finding: IFinding): IFinding {
  return finding.code === COST_NOT_CONFIRMED
    ? { ...finding, level: 'warning' }
    : finding;
}

/** A field that a finding or an error names, among those of the form. */
export function fieldAt(
  name: string | null,
  fields: readonly IField[]
): IField | undefined {
  const path = (name ?? '').replace(/^spec\./, '');
  return path === ''
    ? undefined
    : (fields.find(field => field.path === path) ??
        fields.find(
          field =>
            field.path.startsWith(`${path}.`) ||
            path.startsWith(`${field.path}.`)
        ));
}

/** The fields of errors that were found, by path: the finding says what is wrong. */
export function foundProblems(
  findings: readonly IFinding[],
  fields: readonly IField[]
): Readonly<Record<string, string>> {
  const paths = findings
    .filter(({ level }) => level === 'error')
    .map(one => fieldAt(one.field, fields)?.path);
  return Object.fromEntries(
    paths.filter(path => path !== undefined).map(path => [path, ''])
  );
}

/** What the server said is wrong with single fields, by path. */
export function serverProblems(
  error: ApiError | null,
  fields: readonly IField[]
): Readonly<Record<string, string>> {
  const problems: Record<string, string> = {};
  if (!error) {
    return problems;
  }
  const listed = error.detail.problems;
  for (const one of Array.isArray(listed) ? listed : []) {
    if (isRecord(one)) {
      note(problems, fields, one.field, one.message);
    }
  }
  note(problems, fields, error.detail.field, error.message);
  return problems;
}

function note(
  problems: Record<string, string>,
  fields: readonly IField[],
  name: unknown,
  message: unknown
): void {
  const field = fieldAt(typeof name === 'string' ? name : null, fields);
  if (field && typeof message === 'string') {
    problems[field.path] ??= withoutField(message, name);
  }
}

/** A message less the place in the spec that it begins with: it stands at the field, or after its label. */
export function withoutField(message: string, name: unknown): string {
  const prefix = `${String(name)}: `;
  return message.startsWith(prefix) ? message.slice(prefix.length) : message;
}

/** Findings that a refusal carries and the preview did not have; a refusal without any is one itself. */
function refusals(
  error: ApiError | null,
  preview: IPreview | null
): readonly IFinding[] {
  if (!error || !isAnswered(error)) {
    return [];
  }
  const { code, detail, hint, message } = error;
  const field = typeof detail.field === 'string' ? detail.field : null;
  const alone: IFinding = {
    ...{ level: 'error', code, field, hint, fixes: [] },
    message: withoutField(message, field)
  };
  const listed = detail.findings as readonly IFinding[] | undefined;
  const known = new Set(preview?.findings.map(one => one.message));
  return (listed ?? [alone]).filter(one => !known.has(one.message));
}

/** Whether an error is about what was typed in, and not about the way to the server or the permission to ask it. */
export function isAnswered(error: ApiError): boolean {
  return error.isRefused && !error.isForeign && error.status !== 403;
}
