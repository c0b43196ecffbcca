import { HyperPodClient, recordOf } from '../api';
import { decodeRun, IRun } from '../runs/types';
import { decodePreview, IPreview, ISubmitBody } from './types';

/**
 * Everything that is asked of the server to send a run; tests give it one of their own.
 */
export interface ISubmitClient {
  /** The spec's JSON Schema. */
  schema(): Promise<Readonly<Record<string, unknown>>>;
  preview(body: ISubmitBody, signal?: AbortSignal): Promise<IPreview>;
  submit(body: ISubmitBody): Promise<IRun>;
}

/**
 * The client of the server extension's submit routes.
 */
export class SubmitClient implements ISubmitClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  schema(): Promise<Readonly<Record<string, unknown>>> {
    return this._client.get('schema', value => recordOf(value, 'schema'));
  }

  preview(body: ISubmitBody, signal?: AbortSignal): Promise<IPreview> {
    return this._client.post('runs/preview', body, decodePreview, { signal });
  }

  submit(body: ISubmitBody): Promise<IRun> {
    return this._client.post('runs', body, decodeRun);
  }

  private readonly _client: HyperPodClient;
}
