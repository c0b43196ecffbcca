import { listOf, recordOf, textOf, textOrNull, truthOf } from '../api';
import type * as wire from '../api/types';
import { decodeSide, ISide } from './types';

/**
 * The partition in the folder that the file browser shows.
 */
export interface ILinkMade {
  /** The link below the server's root. */
  readonly path: string;
  readonly partition: string;
  /** Whether it was not there before. */
  readonly isNew: boolean;
}

/**
 * A path on each side.
 */
export interface IPaths {
  readonly here: string;
  /** Whether the server's machine is a space of Studio. */
  readonly isStudio: boolean;
  readonly sides: readonly ISide[];
}

/**
 * What is known of a file's bytes, or became of a request for them.
 */
export interface IStoredFile {
  readonly path: string;
  /** `seen`, `asked`, `nothing`, `refused`, or a newer word. */
  readonly done: string;
  /** `local`, `released` and so on; null where it cannot be had. */
  readonly state: string | null;
  readonly progress: string | null;
  readonly reason: string | null;
  readonly hint: string | null;
  /** The task of AWS that does it. */
  readonly task: string | null;
}

/** Read an answer of `POST storage/link`. */
export function decodeLink(value: unknown): ILinkMade {
  const from = recordOf<wire.IStorageLinkMade>(value, 'link');
  return {
    path: textOf(from, 'path'),
    partition: textOf(from, 'partition'),
    isNew: truthOf(from, 'made')
  };
}

/** Read an answer of `GET storage/paths`. */
export function decodePaths(value: unknown): IPaths {
  const from = recordOf<wire.IStoragePaths>(value, 'paths');
  return {
    here: textOf(from, 'here'),
    isStudio: truthOf(from, 'studio'),
    sides: listOf(from, 'clusters', decodeSide)
  };
}

/** Read an answer of `POST storage/files/states` or `actions`. */
export function decodeStoredFiles(value: unknown): readonly IStoredFile[] {
  const from = recordOf<wire.IStoredFiles>(value, 'files');
  return listOf(from, 'files', decodeStoredFile);
}

function decodeStoredFile(value: unknown): IStoredFile {
  const from = recordOf<wire.IStoredFile>(value, 'file');
  return {
    path: textOf(from, 'path'),
    done: textOf(from, 'done'),
    state: textOrNull(from, 'state'),
    progress: textOrNull(from, 'progress'),
    reason: textOrNull(from, 'reason'),
    hint: textOrNull(from, 'hint'),
    task: textOrNull(from, 'task')
  };
}
