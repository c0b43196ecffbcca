import { URLExt } from '@jupyterlab/coreutils';

import { HyperPodClient, Schema } from '../api';

/** The numbers of one name that a rank printed in an attempt. */
export type IMetricSeries = Schema<'MetricSeries'>;

/** What the ranks of a run print. */
export type IRunSeries = Schema<'RunSeries'>;

/** The newest numbers of a run. */
export type IRunNumbers = Schema<'RunNumbers'>;

/** Newest values, how far the run is, alarms. */
export type IMetricSummary = Schema<'MetricSummary'>;

/** Something is wrong with a run. */
export type IRunAlarm = Schema<'RunAlarm'>;

/** What differs between runs. */
export type IComparison = Schema<'Comparison'>;

/** Seconds for which the server holds an answer back until there are new numbers. */
const WAIT_S = 15;

/** Points of a series in one answer. */
const MOST = 1000;

/**
 * The client of the routes on what runs print.
 */
export class TrainingClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** All series of a run; with a cursor what came after it, as soon as there is something. */
  series(runId: string, cursor: string | null): Promise<IRunSeries> {
    const path = URLExt.join('runs', encodeURIComponent(runId), 'series');
    const query =
      cursor === null ? { most: MOST } : { most: MOST, cursor, wait: WAIT_S };
    return this._client.get(path, {
      query: query satisfies Schema<'SeriesQuery'>
    });
  }

  /** The newest numbers of runs; those without any are missing. */
  async summaries(runIds: readonly string[]): Promise<readonly IRunNumbers[]> {
    const query = { run: runIds.join(',') };
    const found = await this._client.get<Schema<'Summaries'>>(
      'training/summaries',
      { query }
    );
    return found.runs;
  }

  /** What differs between runs. */
  compare(runIds: readonly string[]): Promise<IComparison> {
    return this._client.get('training/compare', {
      query: { run: runIds.join(',') }
    });
  }
}

/** What the rest needs of it; tests give one of their own. */
export type ITrainingClient = Pick<TrainingClient, keyof TrainingClient>;
