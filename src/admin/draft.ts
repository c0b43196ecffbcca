import {
  FOLDER_FIELDS,
  folderDraft,
  folderPlace,
  IFolderDraft
} from './folders';
import { IAsked, IChoices, Mode } from './types';

/**
 * What stands in the form.
 */
export interface IDraft {
  readonly domain: string;
  readonly fileSystem: string;
  readonly mode: Mode;
  readonly sharedPath: string;
  /** Names with commas or spaces between them; empty: all. */
  readonly profiles: string;
  readonly takeOver: boolean;
  readonly folders: IFolderDraft;
}

/** What stands there at first: what was asked for last, else what is chosen most often. */
export function firstDraft(asked: IAsked | null, choices: IChoices): IDraft {
  const [domain] = choices.domains;
  const [fileSystem] = choices.fileSystems;
  return {
    domain: asked?.domain ?? choices.domain ?? domain?.id ?? '',
    fileSystem: asked?.fileSystem ?? fileSystem?.id ?? '',
    mode: asked?.mode ?? 'shared',
    sharedPath: asked?.sharedPath ?? '/shared',
    profiles: asked?.profiles?.join(', ') ?? '',
    takeOver: asked?.takeOver ?? false,
    folders: folderDraft(asked?.folders)
  };
}

/** What the form asks for. */
export function askedOf(draft: IDraft, back = false): IAsked {
  const profiles = draft.profiles.split(/[\s,]+/).filter(Boolean);
  return {
    domain: draft.domain.trim(),
    fileSystem: draft.fileSystem.trim() || null,
    cluster: null,
    mode: back ? null : draft.mode,
    sharedPath: draft.sharedPath.trim(),
    profiles: profiles.length > 0 ? profiles : null,
    takeOver: draft.takeOver,
    folders: folderPlace(draft.folders)
  };
}

/** Whether a plan is not of what stands in the form; whether it takes back is no part of that. */
export function isOfOther(asked: IAsked, draft: IDraft): boolean {
  const now = askedOf(draft, asked.mode === null);
  const parts = (one: IAsked) =>
    JSON.stringify([
      one.domain,
      one.fileSystem,
      one.mode,
      one.mode === 'shared' ? one.sharedPath : null,
      one.profiles === null ? null : [...one.profiles].sort(),
      one.takeOver,
      // Where all is taken back nobody makes any.
      one.mode === null
        ? null
        : [one.folders.by, ...FOLDER_FIELDS.map(field => one.folders[field])]
    ]);
  return parts(now) !== parts(asked);
}
