import { ActionKind, IChange } from '../actions/kinds';
import type { Schema } from '../api';

/** A cluster, of the configuration or of AWS, and whether it answers. */
export type ICluster = Schema<'Cluster'>;

/** The first clusters. */
export type IClusterPage = Schema<'ClusterPage'>;

/** A cluster with all its AWS data. */
export type IClusterDetail = Schema<'ClusterDetail'>;

/** Of when something is, why there is nothing newer, whether more is on its way, and what is to be said of it. */
export type IAged = Pick<
  IClusterPage,
  'as_of' | 'problem' | 'loading' | 'notes'
>;

/**
 * What is to be done to which jobs.
 */
export interface IJobOrder {
  readonly action: ActionKind;
  /** The scheduler's ids. */
  readonly jobs: readonly string[];
  readonly change?: IChange;
}

/** What came of it for one job; its error is null when it was done. */
export type IJobResult = Schema<'JobResult'>;

/** Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts. */
export type IDevice = Schema<'Device'>;

/** What a queue may give of one resource on nodes of one kind; memory is in bytes. */
export type IQuota = Schema<'Quota'>;

/**
 * A cell's value: a table shows what the server sends.
 */
export type CellValue =
  | string
  | number
  | boolean
  | null
  | readonly string[]
  | readonly IDevice[]
  | readonly IQuota[];

/**
 * A row of a cluster's table, by the server's names.
 */
export type TableRow<N extends string = string> = Readonly<
  Record<N, CellValue>
>;

/** What of a cluster is shown as a table: `jobs` are those that have not ended, `runs` the user's own that have. */
export type TableKind = 'nodes' | 'queues' | 'jobs' | 'ended' | 'runs';

/**
 * Which part of a table is wanted; the server sorts, filters and cuts.
 */
export interface ITableQuery {
  readonly limit: number;
  readonly cursor?: string;
  /** A column's name, with a minus in front for falling order. */
  readonly sort?: string;
  /** Words that must all occur in the row. */
  readonly filter?: string;
  /** Whether the user wants it as it is now, where the server keeps what it was told. */
  readonly refresh?: boolean;
}

/**
 * A part of a table.
 */
export interface ITablePage extends Partial<IAged> {
  readonly rows: readonly TableRow[];
  readonly next: string | null;
  readonly total: number | null;
  /** Whether its rows are about to change. */
  readonly changing?: boolean;
}

/** What of a run a table shows. */
export type RunColumn = keyof Schema<'Run'> &
  (
    | 'name'
    | 'run_id'
    | 'state'
    | 'reason'
    | 'exit_code'
    | 'queue'
    | 'nodes'
    | 'started_at'
    | 'ended_at'
  );

/** What of a run a table shows, as a row of it. */
export function runRow(run: Schema<'Run'>): TableRow<RunColumn> {
  const { exit_code, name, nodes, queue, reason, run_id, state } = run;
  const { ended_at, started_at } = run;
  return {
    ...{ exit_code, name, nodes, queue, reason, run_id, state },
    ...{ ended_at, started_at }
  };
}

/** How often a cluster's scheduler was asked from here in the last minute; null where there is none. */
export function schedulerCalls({ detail }: ICluster): number | null {
  const { scheduler_calls: calls } = detail;
  return typeof calls === 'number' ? calls : null;
}

/** A cell's value as text; that of devices is for those who know what of it they show. */
export function valueText(value: CellValue | undefined): string {
  if (value === null || value === undefined) {
    return '';
  }
  return typeof value === 'object'
    ? value.filter(item => typeof item === 'string').join(', ')
    : String(value);
}

/** The devices in a cell. */
export function devicesOf(value: CellValue | undefined): readonly IDevice[] {
  return partsOf(value).filter((item): item is IDevice => 'total' in item);
}

/** The quota in a cell. */
export function quotasOf(value: CellValue | undefined): readonly IQuota[] {
  return partsOf(value).filter((item): item is IQuota => 'nominal' in item);
}

function partsOf(value: CellValue | undefined): readonly (IDevice | IQuota)[] {
  return Array.isArray(value)
    ? value.filter(
        (item: string | IDevice | IQuota): item is IDevice | IQuota =>
          typeof item !== 'string'
      )
    : [];
}
