import {
  FOLDER_FIELDS,
  folderDraft,
  folderPlace,
  IFolderDraft
} from './folders';
import { IAsked, IChoices, isOpen, IThere, IWork, Mode } from './types';

/** Default name of the shared folder. */
const SHARED = '/shared';

/**
 * The values of the form.
 */
export interface IDraft {
  readonly domain: string;
  readonly fileSystem: string;
  /** Null: as it is there. */
  readonly mode: Mode | null;
  /** Null: as it is there. */
  readonly sharedPath: string | null;
  /** Names with commas or spaces between them; empty: all. */
  readonly profiles: string;
  readonly takeOver: boolean;
  readonly folders: IFolderDraft;
}

/** Initial values: those of the plan that is shown, otherwise those in force. */
export function firstDraft(work: IWork, choices: IChoices): IDraft {
  const { asked, plan } = work;
  // Once it has ended, what it was asked for may be as it was long ago.
  const open = isOpen(work) ? asked : null;
  const [domain] = choices.domains;
  const [fileSystem] = choices.file_systems;
  return {
    domain: asked?.domain ?? choices.domain ?? domain?.id ?? '',
    fileSystem: asked?.file_system ?? plan?.file_system ?? fileSystem?.id ?? '',
    mode: open?.mode ?? null,
    sharedPath: open?.shared_path ?? null,
    profiles: asked?.profiles?.join(', ') ?? '',
    takeOver: asked?.take_over ?? false,
    folders: folderDraft(asked?.folders)
  };
}

/** The draft with what is there where nothing else was chosen; null: that is not known yet. */
export function withThere(draft: IDraft, there: IThere | null): IDraft {
  return there === null
    ? draft
    : {
        ...draft,
        mode: draft.mode ?? modeThere(there),
        sharedPath: draft.sharedPath ?? there.shared_path ?? SHARED
      };
}

/** Of both modes, the one that the domain itself has; some profiles have the other one alone. */
function modeThere({ mode, shared_path: sharedPath }: IThere): Mode {
  if (mode === 'both') {
    return sharedPath === null ? 'per-user' : 'shared';
  }
  return mode ?? 'shared';
}

/** What the form asks for. */
export function askedOf(draft: IDraft, back = false): IAsked {
  const profiles = draft.profiles.split(/[\s,]+/).filter(Boolean);
  return {
    domain: draft.domain.trim(),
    file_system: draft.fileSystem.trim() || null,
    cluster: null,
    mode: back ? null : (draft.mode ?? 'shared'),
    shared_path: (draft.sharedPath ?? SHARED).trim(),
    profiles: profiles.length > 0 ? profiles : null,
    take_over: draft.takeOver,
    folders: folderPlace(draft.folders)
  };
}

/** Whether a plan does not match the form's values; whether it is an undo does not matter. */
export function isOfOther(asked: IAsked, draft: IDraft): boolean {
  const now = askedOf(draft, asked.mode === null);
  const parts = (one: IAsked) =>
    JSON.stringify([
      one.domain,
      one.file_system,
      one.mode,
      one.mode === 'shared' ? one.shared_path : null,
      one.profiles === null ? null : [...one.profiles].sort(),
      one.take_over,
      // An undo creates no folders.
      one.mode === null
        ? null
        : [one.folders.by, ...FOLDER_FIELDS.map(field => one.folders[field])]
    ]);
  return parts(now) !== parts(asked);
}
