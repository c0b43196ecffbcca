import { HyperPodClient } from '../api';
import type { IFilesActionBody } from '../api/types';
import {
  decodeLink,
  decodePaths,
  decodeStoredFiles,
  ILinkMade,
  IPaths,
  IStoredFile
} from './fileTypes';

/** What the link to the partition is called. */
const LINK = 'hyperpod-partition';

/** What can be done to bytes of files. */
export type FileAction = IFilesActionBody['action'];

/**
 * What is asked of the server on files of the file browser; tests give one of their own. Paths are those of the file browser.
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
 * The client of the server extension's routes on files.
 */
export class FileClient implements IFileClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  link(): Promise<ILinkMade> {
    return this._client.post('storage/link', { name: LINK }, decodeLink);
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
