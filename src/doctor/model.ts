import { Event } from '@jupyterlab/services';
import { ISignal } from '@lumino/signaling';

import { ServerWork } from '../components/serverWork';
import { IAsked, IDoctorClient } from './client';
import { IExamination } from './types';

/** The schema of the server's events on examinations. */
export const DOCTOR_EVENT = 'https://hyperpod-jlab.dev/events/doctor/v1';

/**
 * The server's examination.
 */
export class DoctorModel extends ServerWork<IExamination> {
  constructor(
    client: IDoctorClient,
    events: ISignal<unknown, Event.Emission>,
    mend?: number
  ) {
    super({ events, schema: DOCTOR_EVENT, mend });
    this._client = client;
  }

  override get isBusy(): boolean {
    return this.value?.state === 'running';
  }

  /** Begin an examination. */
  begin(asked: IAsked): Promise<void> {
    return this.ask(() => this._client.begin(asked));
  }

  /** Begin the first examination, unless there was one. */
  async beginFirst(asked: IAsked): Promise<void> {
    await this.look();
    if (this.value?.state === 'none') {
      await this.begin(asked);
    }
  }

  /** End the examination that goes on. */
  cancel(): Promise<void> {
    return this.ask(() => this._client.cancel());
  }

  protected override read(): Promise<IExamination> {
    return this._client.read();
  }

  private readonly _client: IDoctorClient;
}
