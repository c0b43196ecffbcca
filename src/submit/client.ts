import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';
import { IRun } from '../runs/types';
import { Choices, IPreview, ISubmitBody } from './types';

/**
 * The client of the server extension's submit routes.
 */
export class SubmitClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** The spec's JSON Schema. */
  schema(): Promise<Readonly<Record<string, unknown>>> {
    return this._client.get('schema');
  }

  /** Names that this user may give on a cluster, by the spec's field. */
  async choices(cluster: string): Promise<Choices> {
    const path = URLExt.join('clusters', encodeURIComponent(cluster));
    const [found, mlflow] = await Promise.all([
      this._client.get<Schema<'Choices'>>(URLExt.join(path, 'choices')),
      this._client.get<Schema<'MlflowServers'>>(URLExt.join(path, 'mlflow'))
    ]);
    const servers = mlflow.servers.map(one => one.arn);
    return { ...found.choices, 'mlflow.tracking_uri': servers };
  }

  preview(body: ISubmitBody, signal?: AbortSignal): Promise<IPreview> {
    return this._client.post('runs/preview', body, { signal });
  }

  submit(body: ISubmitBody): Promise<IRun> {
    return this._client.post('runs', body);
  }
}

/** What the rest needs of it; tests give one of their own. */
export type ISubmitClient = Pick<SubmitClient, keyof SubmitClient>;
