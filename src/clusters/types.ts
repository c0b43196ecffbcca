import {
  ApiError,
  asNumber,
  asText,
  listOf,
  numberOf,
  numberOrNull,
  partOrNull,
  recordOf,
  textOf,
  textOrNull,
  truthOf
} from '../api';
import {
  ActionKind,
  ChangeField,
  IChange,
  knownActions,
  knownChanges
} from '../actions/kinds';
import type * as wire from '../api/types';

/**
 * A cluster of the configuration, and whether it answers.
 */
export interface ICluster {
  readonly name: string;
  readonly orchestrator: string;
  readonly isDefault: boolean;
  readonly state: string;
  readonly reason: string | null;
  /** What of it is hidden from the user, and why: a sentence each. */
  readonly notes: readonly string[];
  readonly nodes: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  /** How often its scheduler was asked from here in the last minute; null where there is none. */
  readonly schedulerCalls?: number | null;
  /** The moment that the numbers are of, where it does not answer now. */
  readonly asOf?: string | null;
  /** What can be done to runs and jobs there. */
  readonly actions: readonly ActionKind[];
  /** What of them can be changed. */
  readonly changes: readonly ChangeField[];
  /** Whether jobs that were sent elsewhere can become runs. */
  readonly canAdopt: boolean;
  /** Whether ports of runs that run can be reached. */
  readonly hasPorts: boolean;
}

/**
 * What is to be done to which jobs.
 */
export interface IJobOrder {
  readonly action: ActionKind;
  /** The scheduler's ids. */
  readonly jobs: readonly string[];
  readonly change?: IChange;
}

/**
 * What came of it for one job.
 */
export interface IJobResult {
  readonly schedulerId: string;
  /** Null when it was done. */
  readonly error: ApiError | null;
}

/**
 * Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts.
 */
export interface IDevice {
  readonly name: string;
  readonly type: string | null;
  readonly total: number;
  readonly used: number;
  /** How many a new job can get. */
  readonly free: number;
  /** Numbers of the devices that jobs have. */
  readonly usedAt: readonly number[];
  /** Numbers of the devices that jobs have parts of. */
  readonly sharedAt: readonly number[];
  /** Number of the first device; null where they have none. */
  readonly first: number | null;
  /** Whether it computes. */
  readonly isAccelerator: boolean;
}

/** What a queue may give of one resource on nodes of one kind; memory is in bytes. */
export type IQuota = wire.IQuota;

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
export interface ITablePage {
  readonly rows: readonly TableRow[];
  readonly next: string | null;
  readonly total: number | null;
  /** The moment that the rows are of, where the cluster does not answer now; always, where they are from AWS. */
  readonly asOf?: string | null;
  /** Whether more of it is on its way. */
  readonly loading?: boolean;
  /** Whether its rows are about to change. */
  readonly changing?: boolean;
  /** Why there are no newer ones. */
  readonly problem?: ApiError | null;
  /** What is hidden from the user, and why: a sentence each. */
  readonly notes?: readonly string[];
}

/** The list of rows is under the name of what is in it. */
type ITables = wire.INodes & wire.IQueues & wire.IJobs;

function callsOf(detail: unknown): number | null {
  const from = recordOf<{ scheduler_calls?: number }>(detail, 'detail');
  return numberOrNull(from, 'scheduler_calls');
}

/** A cluster from an answer. */
export function decodeCluster(value: unknown): ICluster {
  const from = recordOf<wire.ICluster>(value, 'cluster');
  return {
    name: textOf(from, 'name'),
    orchestrator: textOrNull(from, 'orchestrator') ?? '',
    isDefault: truthOf(from, 'default'),
    state: textOrNull(from, 'state') ?? 'unknown',
    reason: textOrNull(from, 'reason'),
    notes: Array.isArray(from.notes) ? from.notes.map(asText) : [],
    nodes: numberOrNull(from, 'nodes'),
    running: numberOrNull(from, 'running'),
    waiting: numberOrNull(from, 'waiting'),
    schedulerCalls: partOrNull(from, 'detail', callsOf),
    asOf: textOrNull(from, 'as_of'),
    actions: knownActions(listOf(from, 'actions', asText)),
    changes: Array.isArray(from.changes)
      ? knownChanges(from.changes.map(asText))
      : [],
    canAdopt: listOf(from, 'actions', asText).includes('adopt'),
    hasPorts: listOf(from, 'actions', asText).includes('ports')
  };
}

/** What came of an action on jobs, from an answer. */
export function decodeResults(value: unknown): readonly IJobResult[] {
  const from = recordOf<wire.IJobResults>(value, 'results');
  return listOf(from, 'results', item => {
    const one = recordOf<wire.IJobResult>(item, 'result');
    const error: unknown = one.error;
    return {
      schedulerId: textOf(one, 'scheduler_id'),
      error: error === null ? null : decodeError(error)
    };
  });
}

/** An error that is part of an answer. */
export function decodeError(value: unknown): ApiError {
  const from = recordOf<wire.IError>(value, 'error');
  const hint = textOrNull(from, 'hint');
  const { code, message } = {
    code: textOf(from, 'code'),
    message: textOf(from, 'message')
  };
  return new ApiError({ code, message, hint, detail: {} }, null);
}

/** The names of a cluster's queues that may be given, from an answer. */
export function decodeQueueNames(value: unknown): readonly string[] {
  const from = recordOf<wire.IChoices>(value, 'choices');
  const { queue } = recordOf(from.choices, 'choices');
  return Array.isArray(queue) ? queue.map(asText) : [];
}

/** A part of a table from an answer. */
export function decodeTable(
  kind: 'nodes' | 'queues' | 'jobs',
  value: unknown
): ITablePage {
  const from = recordOf<ITables>(value, kind);
  return {
    rows: listOf(from, kind, decodeRow),
    next: textOrNull(from, 'next'),
    total: numberOrNull(from, 'total'),
    asOf: textOrNull(from, 'as_of'),
    problem: from.problem ? decodeError(from.problem) : null,
    notes: Array.isArray(from.notes) ? from.notes.map(asText) : []
  };
}

/** A part of the list of runs, as a table. */
export function decodeRuns(value: unknown): ITablePage {
  const from = recordOf<wire.IRunList>(value, 'runs');
  return {
    rows: listOf(from, 'runs', decodeRun),
    next: textOrNull(from, 'next'),
    total: null
  };
}

function decodeRun(value: unknown): TableRow<RunColumn> {
  const from = recordOf<wire.IRun>(value, 'run');
  return {
    name: textOf(from, 'name'),
    run_id: textOf(from, 'run_id'),
    state: textOf(from, 'state'),
    reason: textOrNull(from, 'reason'),
    exit_code: numberOrNull(from, 'exit_code'),
    queue: textOrNull(from, 'queue'),
    nodes: numberOf(from, 'nodes'),
    started_at: textOrNull(from, 'started_at'),
    ended_at: textOrNull(from, 'ended_at')
  };
}

/** What of a run a table shows. */
export type RunColumn = keyof wire.IRun &
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

/** A row of a table, whatever its columns. */
export function decodeRow(value: unknown): TableRow {
  const row: Record<string, CellValue> = {};
  for (const [name, cell] of Object.entries(recordOf(value, 'row'))) {
    if (Array.isArray(cell)) {
      row[name] = decodeCells(name, cell);
    } else if (
      typeof cell === 'string' ||
      typeof cell === 'number' ||
      typeof cell === 'boolean'
    ) {
      row[name] = cell;
    } else {
      row[name] = null;
    }
  }
  return row;
}

function decodeCells(
  name: string,
  cells: readonly unknown[]
): readonly string[] | readonly IDevice[] | readonly IQuota[] {
  switch (name) {
    case 'resources':
      return cells.map(decodeDevice);
    case 'quotas':
      return cells.map(decodeQuota);
    default:
      return cells.map(asText);
  }
}

/** A queue's quota of one resource from an answer. */
export function decodeQuota(value: unknown): IQuota {
  const from = recordOf<wire.IQuota>(value, 'quota');
  return {
    flavor: textOf(from, 'flavor'),
    resource: textOf(from, 'resource'),
    nominal: numberOf(from, 'nominal'),
    used: numberOf(from, 'used'),
    borrowed: numberOf(from, 'borrowed'),
    free: numberOf(from, 'free'),
    most: numberOf(from, 'most')
  };
}

function decodeDevice(value: unknown): IDevice {
  const from = recordOf<wire.IDevice>(value, 'device');
  return {
    name: textOf(from, 'name'),
    type: textOrNull(from, 'type'),
    total: numberOf(from, 'total'),
    used: numberOf(from, 'used'),
    free: numberOf(from, 'free'),
    usedAt: listOf(from, 'used_at', item => asNumber(item, 'used_at')),
    sharedAt: listOf(from, 'shared_at', item => asNumber(item, 'shared_at')),
    first: numberOrNull(from, 'first'),
    isAccelerator: truthOf(from, 'accelerator')
  };
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
