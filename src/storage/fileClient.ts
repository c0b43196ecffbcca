import { HyperPodClient, Schema } from '../api';
import { ILinkMade, IPaths, IStoredFile } from './types';

/** What the link to the partition is called. */
const LINK = 'hyperpod-partition';

/** What can be done to bytes of files. */
export type FileAction = Schema<'FilesActionBody'>['action'];

/**
 * The client of the server extension's routes on files.
 */
export class FileClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** Make a link to the partition where the file browser shows it. */
  link(): Promise<ILinkMade> {
    return this._client.post('storage/link', { name: LINK });
  }

  /** A path on each side. */
  paths(path: string): Promise<IPaths> {
    return this._client.get('storage/paths', { query: { path } });
  }

  /** Where the bytes of files are. */
  states(paths: readonly string[]): Promise<readonly IStoredFile[]> {
    return this._files('states', { paths });
  }

  /** Have bytes of files moved. */
  act(
    action: FileAction,
    paths: readonly string[]
  ): Promise<readonly IStoredFile[]> {
    return this._files('actions', { action, paths });
  }

  private async _files(
    what: string,
    body: Schema<'FilesBody'> | Schema<'FilesActionBody'>
  ): Promise<readonly IStoredFile[]> {
    const path = `storage/files/${what}`;
    return (await this._client.post<Schema<'StoredFiles'>>(path, body)).files;
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IFileClient = Pick<FileClient, keyof FileClient>;
