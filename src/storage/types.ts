import type { Schema } from '../api';

/** What keeps others out of a folder, and how that is known. */
export type IIsolation = Schema<'StorageIsolation'>;

/** A file system that is mounted on the server's machine, or a folder of one. Sizes are in bytes. */
export type IPlace = Schema<'StoragePlace'>;

/** The partition as this machine and a cluster see it. */
export type ISide = Schema<'StorageSide'>;

/** Whether other users are kept from exchanging and writing this user's runs. */
export type ISeparation = Schema<'StorageSeparation'>;

/** All storage of the server's machine. */
export type IStorage = Schema<'StorageOverview'>;

/** The partition in the folder that the file browser shows. */
export type ILinkMade = Schema<'StorageLinkMade'>;

/** A path on each side. */
export type IPaths = Schema<'StoragePaths'>;

/** What is known of a file's bytes, or became of a request for them. */
export type IStoredFile = Schema<'StoredFile'>;
