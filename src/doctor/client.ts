import { HyperPodClient, Schema } from '../api';
import { IExamination } from './types';

/** What is to be examined. */
export interface IAsked {
  /** Only the way to this cluster; null: all. */
  readonly cluster: string | null;
  /** Whether a tiny job is sent at the end, to that cluster or the default one. */
  readonly job: boolean;
}

/** The examination for an admin, and a name for its file. */
export type IReport = Schema<'DoctorReport'>;

/**
 * The client of the server extension's doctor.
 */
export class DoctorClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** The newest examination. */
  read(): Promise<IExamination> {
    return this._client.get('doctor');
  }

  /** Begin an examination, or join the same that goes on. */
  begin(asked: IAsked): Promise<IExamination> {
    const body: Schema<'DoctorBody'> = asked;
    return this._client.post('doctor', body);
  }

  /** End the one that goes on. */
  cancel(): Promise<IExamination> {
    return this._client.post('doctor/cancel', {});
  }

  /** The newest one as a report. */
  report(): Promise<IReport> {
    return this._client.get('doctor/report');
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IDoctorClient = Pick<DoctorClient, keyof DoctorClient>;
