import { TranslationBundle } from '@jupyterlab/translation';

import { isRecord } from '../api';
import { IField } from './fields';
import { baseOf, ICodeCell, ISubmitSource } from './source';
import { ISize } from './starting';
import { ISubmitBody, JsonObject } from './types';
import { readTexts, Texts } from './values';

/** What a smoke run is: as small as can be, and soon over. */
const SMOKE: Texts = {
  'resources.nodes': '1',
  time_limit: '2m',
  max_restarts: '',
  array: ''
};

/**
 * All that the form holds.
 */
export interface IDraft {
  readonly cluster: string | null;
  readonly texts: Texts;
  /** Only a short try on one node. */
  readonly smoke: boolean;
  /** All of the notebook, though cells are selected. */
  readonly whole: boolean;
  /** Another user's code is to run with this user's rights. */
  readonly trusted: boolean;
  /** Values of secrets that have no reference. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** An untouched form. */
export const EMPTY_DRAFT: IDraft = {
  cluster: null,
  texts: {},
  smoke: false,
  whole: false,
  trusted: false,
  secrets: {}
};

/** The effective values: a smoke test replaces some. */
export function effectiveTexts(draft: IDraft): Texts {
  return draft.smoke ? { ...draft.texts, ...SMOKE } : draft.texts;
}

/** How big a run is, with what counts where nothing is typed in, or nothing that is a number. */
export function sizeOf(texts: Texts): ISize {
  const number = (path: string) => {
    const text = (texts[path] ?? '').trim();
    return /^\d{1,9}$/.test(text) ? Number(text) : null;
  };
  const gpus =
    number('resources.gpus_per_node') ??
    (number('resources.accelerators.count') || 0);
  return {
    nodes: number('resources.nodes') ?? 1,
    gpus,
    ranks: number('resources.processes_per_node') ?? Math.max(gpus, 1)
  };
}

/** Whether a smoke run decides on a field. */
export function isOverruled(draft: IDraft, path: string): boolean {
  return draft.smoke && path in SMOKE;
}

/** What is wrong with the fields, by path. */
export function problemsOf(
  fields: readonly IField[],
  draft: IDraft,
  trans: TranslationBundle
): Readonly<Record<string, string>> {
  return readTexts(fields, effectiveTexts(draft), trans).problems;
}

/** The spec without its source: what presets and the last settings keep. */
export function settingsOf(
  fields: readonly IField[],
  texts: Texts,
  trans: TranslationBundle
): JsonObject {
  return readTexts(fields, texts, trans).spec;
}

/** Secrets that need a value, by name. */
export function openSecrets(texts: Texts): readonly string[] {
  return (texts['environment.secrets'] ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !/=./.test(line))
    .map(line => line.replace(/=$/, ''));
}

/** The request. */
export function bodyOf(
  runId: string,
  source: ISubmitSource,
  fields: readonly IField[],
  draft: IDraft,
  trans: TranslationBundle
): ISubmitBody {
  const settings = settingsOf(fields, effectiveTexts(draft), trans);
  const view = source.view?.() ?? null;
  const open = openSecrets(draft.texts);
  const secrets = open.filter(name => (draft.secrets[name] ?? '') !== '');
  return {
    run_id: runId,
    cluster: draft.cluster,
    spec: {
      ...settings,
      source: { ...parametersOf(source, settings), ...sourceOf(source, draft) }
    },
    base: source.cloneOf === null ? baseOf(source) : undefined,
    notebook: view && source.cloneOf === null ? view.document : undefined,
    secrets: Object.fromEntries(
      secrets.map(name => [name, draft.secrets[name]])
    ),
    clone_of: source.cloneOf ?? undefined,
    trust_owner: (draft.trusted && source.owner) || undefined
  };
}

/** The cells that would run; none when that isn't known here. */
export function chosenCells(
  source: ISubmitSource,
  draft: IDraft
): readonly ICodeCell[] | null {
  const cells = source.view?.().cells ?? null;
  const ids = chosenIds(source, draft);
  return ids === null
    ? cells
    : (cells?.filter(cell => ids.includes(cell.id)) ?? null);
}

/** Whether a source takes values of parameters: a notebook that is captured anew. */
export function takesParameters({ cloneOf, spec }: ISubmitSource): boolean {
  return cloneOf === null && spec.kind === 'notebook';
}

/** The values of a notebook's parameters, as a part of its source; empty for what takes none. */
export function parametersOf(
  source: ISubmitSource,
  { source: typed }: JsonObject
): JsonObject {
  return takesParameters(source) && isRecord(typed) ? typed : {};
}

function sourceOf(source: ISubmitSource, draft: IDraft): JsonObject {
  const ids = chosenIds(source, draft);
  return ids === null ? source.spec : { ...source.spec, cell_ids: ids };
}

function chosenIds(
  source: ISubmitSource,
  draft: IDraft
): readonly string[] | null {
  return draft.whole ? null : source.cellIds;
}
