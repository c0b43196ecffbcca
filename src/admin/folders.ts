import { recordOf, textOf, textOrNull } from '../api';
import type * as wire from '../api/types';

/** Who looks at the folders of a file system and makes them. */
export const FOLDER_MAKERS = ['none', 'here', 'slurm', 'kubernetes'] as const;
export type FolderMaker = (typeof FOLDER_MAKERS)[number];

/** What can be said besides. */
export const FOLDER_FIELDS = [
  'mountedAt',
  'cluster',
  'queue',
  'namespace',
  'claim',
  'image',
  'user'
] as const;
export type FolderField = (typeof FOLDER_FIELDS)[number];

/** What each of them has to know, in the order of the form. */
export const FIELDS_OF: Readonly<Record<FolderMaker, readonly FolderField[]>> =
  {
    none: [],
    here: ['mountedAt', 'user'],
    slurm: ['cluster', 'queue', 'mountedAt', 'user'],
    kubernetes: ['cluster', 'namespace', 'claim', 'image', 'user']
  };

/** Who makes folders, as it is asked for; null: as it is where nobody says it. */
export type IFolderPlace = {
  readonly by: FolderMaker;
} & Readonly<Record<FolderField, string | null>>;

/** The same as it stands in the form. */
export type IFolderDraft = {
  readonly by: FolderMaker;
} & Readonly<Record<FolderField, string>>;

/** A cluster of the configuration whose jobs can make folders. */
export interface IFolderCluster {
  readonly name: string;
  readonly kind: string;
}

/** What stands in the form at first. */
export function folderDraft(place: IFolderPlace | undefined): IFolderDraft {
  return {
    by: place?.by ?? 'none',
    mountedAt: place?.mountedAt ?? '',
    cluster: place?.cluster ?? '',
    queue: place?.queue ?? '',
    namespace: place?.namespace ?? '',
    claim: place?.claim ?? '',
    image: place?.image ?? '',
    user: place?.user ?? ''
  };
}

/** What the form asks for: nothing that this maker of folders does not know. */
export function folderPlace(draft: IFolderDraft): IFolderPlace {
  const { by } = draft;
  const said = (field: FolderField) =>
    FIELDS_OF[by].includes(field) ? draft[field].trim() || null : null;
  return {
    by,
    mountedAt: said('mountedAt'),
    cluster: said('cluster'),
    queue: said('queue'),
    namespace: said('namespace'),
    claim: said('claim'),
    image: said('image'),
    user: said('user')
  };
}

/** The draft with another maker of folders; of several clusters of its kind the first is chosen. */
export function withMaker(
  draft: IFolderDraft,
  by: FolderMaker,
  clusters: readonly IFolderCluster[]
): IFolderDraft {
  const fitting = clusters.filter(({ kind }) => kind === by);
  const cluster = fitting.length > 1 ? fitting[0].name : '';
  return { ...draft, by, cluster };
}

export function decodeFolders(value: unknown): IFolderPlace {
  const from = recordOf<wire.IAdminFolders>(value, 'folders');
  const by = textOf(from, 'by');
  return {
    by: FOLDER_MAKERS.find(one => one === by) ?? 'none',
    mountedAt: textOrNull(from, 'mounted_at'),
    cluster: textOrNull(from, 'cluster'),
    queue: textOrNull(from, 'queue'),
    namespace: textOrNull(from, 'namespace'),
    claim: textOrNull(from, 'claim'),
    image: textOrNull(from, 'image'),
    user: textOrNull(from, 'user')
  };
}

export function encodeFolders(place: IFolderPlace): wire.IAdminFoldersBody {
  const { mountedAt, ...rest } = place;
  return { ...rest, mounted_at: mountedAt };
}
