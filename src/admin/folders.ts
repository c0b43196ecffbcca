import type { Schema } from '../api';

/** Who looks at the folders of a file system and makes them. */
export type FolderMaker = Schema<'AdminFolders'>['by'];
export const FOLDER_MAKERS: readonly FolderMaker[] = [
  'none',
  'here',
  'slurm',
  'kubernetes'
];

/** What can be said besides. */
export const FOLDER_FIELDS = [
  'mounted_at',
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
    here: ['mounted_at', 'user'],
    slurm: ['cluster', 'queue', 'mounted_at', 'user'],
    kubernetes: ['cluster', 'namespace', 'claim', 'image', 'user']
  };

/** Who creates folders, as in the request; null: unchanged. */
export type IFolderPlace = Schema<'AdminFolders'>;

/** The same as values of the form. */
export type IFolderDraft = {
  readonly by: FolderMaker;
} & Readonly<Record<FolderField, string>>;

/** A cluster of the configuration whose jobs can make folders. */
export type IFolderCluster = Schema<'AdminFolderCluster'>;

/** The initial values of the form. */
export function folderDraft(place: IFolderPlace | undefined): IFolderDraft {
  return {
    by: place?.by ?? 'none',
    mounted_at: place?.mounted_at ?? '',
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
    mounted_at: said('mounted_at'),
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
