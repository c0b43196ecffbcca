import { PathExt } from '@jupyterlab/coreutils';
import { TranslationBundle } from '@jupyterlab/translation';

import { JsonObject } from './types';

/**
 * A code cell on the screen.
 */
export interface ICodeCell {
  readonly id: string;
  /** Its place among the code cells, from 1. */
  readonly number: number;
  readonly text: string;
}

/**
 * A notebook as it is on the screen.
 */
export interface INotebookView {
  /** The document that is sent: without outputs, which no run needs. */
  readonly document: JsonObject;
  readonly cells: readonly ICodeCell[];
}

/**
 * What is to be run.
 */
export interface ISubmitSource {
  /** What people call it. */
  readonly label: string;
  /** Its path under the server's root; null for what is no file. */
  readonly path: string | null;
  /** Its folder under the server's root, which the spec's paths are relative to; empty for the root itself. */
  readonly folder: string;
  /** The spec's `source`, for all of it. */
  readonly spec: JsonObject;
  /** The ids of the cells that are selected; null when nothing but all of it can run. */
  readonly cellIds: readonly string[] | null;
  /** The run whose code is sent once more. */
  readonly cloneOf: string | null;
  /** The user whose run that is; null where nothing is sent once more. */
  readonly owner: string | null;
  /** The notebook on the screen; null when it is not open, then the file runs. */
  readonly view: (() => INotebookView) | null;
  /** A file that is open in an editor, which runs as it was saved. */
  readonly editor: IEditor | null;
}

/**
 * An open editor of a file.
 */
export interface IEditor {
  /** There are changes that were not saved. */
  readonly isDirty: () => boolean;
  readonly save: () => Promise<void>;
}

/** The folder that the spec's paths are relative to; none for the server's root. */
export function baseOf(source: ISubmitSource): string | undefined {
  return source.folder || undefined;
}

/** What keeps a source from being sent; null when nothing does. */
export function sourceProblem(
  { cloneOf, path, spec }: ISubmitSource,
  trans: TranslationBundle
): string | null {
  if (cloneOf !== null) {
    return null;
  }
  const { command, kind } = spec;
  if (kind === 'command' && (typeof command !== 'string' || !command.trim())) {
    return trans.__('Enter a command.');
  }
  return path !== null && !('kind' in spec)
    ? trans.__(
        'Enter the path of a notebook, a Python file, an sbatch script or a manifest.'
      )
    : null;
}

/** A shell command as a source, run in a folder under the server's root. */
export function commandSource(
  command: string,
  folder: string,
  label: string
): ISubmitSource {
  return {
    label,
    path: null,
    folder,
    spec: { kind: 'command', command },
    cellIds: null,
    cloneOf: null,
    owner: null,
    view: null,
    editor: null
  };
}

/** A file's name without its folder. */
export function nameOf(path: string): string {
  return PathExt.basename(path);
}

/** The spec's `source` for a file, by its name; null when nothing can run it. */
export function sourceOfFile(path: string): JsonObject | null {
  const name = nameOf(path);
  switch (PathExt.extname(path).toLowerCase()) {
    case '.ipynb':
      return { kind: 'notebook', path: name };
    case '.py':
      return { kind: 'script', path: name };
    case '.sbatch':
    case '.yaml':
    case '.yml':
      return { kind: 'native', path: name };
    default:
      return null;
  }
}

/** A file as a source. */
export function fileSource(
  path: string,
  spec: JsonObject,
  rest: Partial<ISubmitSource> = {}
): ISubmitSource {
  return {
    label: nameOf(path),
    path,
    folder: PathExt.dirname(path),
    spec,
    cellIds: null,
    cloneOf: null,
    owner: null,
    view: null,
    editor: null,
    ...rest
  };
}
