import { HyperPodClient } from '../api';
import type { IFilesActionBody } from '../api/types';
import {
  decodeLink,
  decodePaths,
  decodeStorage,
  decodeStoredFiles,
  ILinkMade,
  IPaths,
  IStorage,
  IStoredFile
} from './types';

/** What can be done to bytes of files. */
export type FileAction = IFilesActionBody['action'];

/**
 * What is asked of the server on storage; tests give one of their own. Paths are those of the file browser.
 */
export interface IStorageClient {
  /** The storage of the server's machine. */
  overview(): Promise<IStorage>;
}

/**
 * What is asked of the server on files of the file browser.
 */
export interface IFileClient {
  /** Make a link to the partition where the file browser shows it. */
  link(): Promise<ILinkMade>;
  /** A path on each side. */
  paths(path: string): Promise<IPaths>;
  /** Where the bytes of files are. */
  states(paths: readonly string[]): Promise<readonly IStoredFile[]>;
  /** Have bytes of files moved. */
  act(
    action: FileAction,
    paths: readonly string[]
  ): Promise<readonly IStoredFile[]>;
}

/**
 * The client of the server extension's storage routes.
 */
export class StorageClient implements IStorageClient, IFileClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  overview(): Promise<IStorage> {
    return this._client.get('storage', decodeStorage);
  }

  link(): Promise<ILinkMade> {
    return this._client.post('storage/link', {}, decodeLink);
  }

  paths(path: string): Promise<IPaths> {
    return this._client.get('storage/paths', decodePaths, { query: { path } });
  }

  states(paths: readonly string[]): Promise<readonly IStoredFile[]> {
    return this._client.post(
      'storage/files/states',
      { paths },
      decodeStoredFiles
    );
  }

  act(
    action: FileAction,
    paths: readonly string[]
  ): Promise<readonly IStoredFile[]> {
    return this._client.post(
      'storage/files/actions',
      { action, paths },
      decodeStoredFiles
    );
  }

  private readonly _client: HyperPodClient;
}
