import { URLExt } from '@jupyterlab/coreutils';

import { asText, HyperPodClient, listOf, recordOf } from '../api';
import type * as wire from '../api/types';
import { decodeRun, IRun } from '../runs/types';
import { Choices, decodePreview, IPreview, ISubmitBody } from './types';

/**
 * Everything that is asked of the server to send a run; tests give it one of their own.
 */
export interface ISubmitClient {
  /** The spec's JSON Schema. */
  schema(): Promise<Readonly<Record<string, unknown>>>;
  /** Names that this user may give on a cluster, by the spec's field. */
  choices(cluster: string): Promise<Choices>;
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

  choices(cluster: string): Promise<Choices> {
    const path = URLExt.join(
      'clusters',
      encodeURIComponent(cluster),
      'choices'
    );
    return this._client.get(path, value => {
      const from = recordOf<wire.IChoices>(value, 'choices');
      const names = recordOf<wire.IChoices['choices']>(from.choices, 'choices');
      return Object.fromEntries(
        Object.keys(names).map(field => [field, listOf(names, field, asText)])
      );
    });
  }

  preview(body: ISubmitBody, signal?: AbortSignal): Promise<IPreview> {
    return this._client.post('runs/preview', body, decodePreview, { signal });
  }

  submit(body: ISubmitBody): Promise<IRun> {
    return this._client.post('runs', body, decodeRun);
  }

  private readonly _client: HyperPodClient;
}
