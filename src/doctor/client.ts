import { asText, HyperPodClient, recordOf } from '../api';
import type * as wire from '../api/types';
import { decodeExamination, IExamination } from './types';

/** What is to be examined. */
export interface IAsked {
  /** Only the way to this cluster; null: all. */
  readonly cluster: string | null;
  /** Whether a tiny job is sent at the end, to that cluster or the default one. */
  readonly job: boolean;
}

/** The examination for an admin, and a name for its file. */
export interface IReport {
  readonly name: string;
  readonly text: string;
}

/**
 * Everything that is asked of the server's doctor; tests give one of their own.
 */
export interface IDoctorClient {
  /** The newest examination. */
  read(): Promise<IExamination>;
  /** Begin an examination, or join the same that goes on. */
  begin(asked: IAsked): Promise<IExamination>;
  /** End the one that goes on. */
  cancel(): Promise<IExamination>;
  /** The newest one as a report. */
  report(): Promise<IReport>;
}

/**
 * The client of the server extension's doctor.
 */
export class DoctorClient implements IDoctorClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  read(): Promise<IExamination> {
    return this._client.get('doctor', decodeExamination);
  }

  begin(asked: IAsked): Promise<IExamination> {
    const body: wire.IDoctorBody = asked;
    return this._client.post('doctor', body, decodeExamination);
  }

  cancel(): Promise<IExamination> {
    return this._client.post('doctor/cancel', {}, decodeExamination);
  }

  report(): Promise<IReport> {
    return this._client.get('doctor/report', value => {
      const from = recordOf<wire.IDoctorReport>(value, 'report');
      return { name: asText(from.name), text: asText(from.text) };
    });
  }

  private readonly _client: HyperPodClient;
}
