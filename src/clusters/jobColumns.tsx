import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import {
  ClippedText,
  hoursText,
  momentColumn,
  reasonColumn,
  stateColumn
} from './cells';
import { amountsText } from './devices';
import { IColumn } from './serverTable';
import { devicesOf, RunColumn, TableRow, valueText } from './types';

/** The columns of everybody's jobs on a cluster that have not ended. */
export function jobColumns(
  trans: TranslationBundle,
  openRun: (runId: string) => void
): IColumn<keyof Schema<'Job'>>[] {
  return [
    ...jobBeginning(trans, openRun),
    {
      name: 'time_limit',
      label: trans.__('Time limit'),
      optional: true,
      render: row => hoursText(row.time_limit, trans)
    },
    {
      ...momentColumn<keyof Schema<'Job'>>(
        'expected_start',
        trans.__('Expected start')
      ),
      optional: true
    },
    momentColumn('started_at', trans.__('Started')),
    momentColumn('submitted_at', trans.__('Submitted')),
    { name: 'priority', label: trans.__('Priority'), optional: true },
    { name: 'account', label: trans.__('Account'), optional: true },
    { name: 'qos', label: trans.__('QoS'), optional: true },
    { name: 'cpus', label: trans.__('CPUs'), optional: true }
  ];
}

/** The columns of everybody's jobs that ended a while ago. */
export function endedColumns(
  trans: TranslationBundle,
  openRun: (runId: string) => void
): IColumn<keyof Schema<'Job'>>[] {
  return [
    ...jobBeginning(trans, openRun),
    momentColumn('started_at', trans.__('Started')),
    momentColumn('ends_at', trans.__('Ended'))
  ];
}

/** The columns of the user's own runs that have ended. */
export function runColumns(
  trans: TranslationBundle,
  openRun: (runId: string) => void
): IColumn<RunColumn>[] {
  return [
    {
      name: 'name',
      label: trans.__('Name'),
      render: row => jobName(row, openRun)
    },
    { name: 'run_id', label: trans.__('Run') },
    stateColumn(trans),
    reasonColumn(trans),
    { name: 'exit_code', label: trans.__('Exit code'), optional: true },
    { name: 'queue', label: trans.__('Queue'), optional: true },
    { name: 'nodes', label: trans.__('Nodes') },
    momentColumn('started_at', trans.__('Started')),
    momentColumn('ended_at', trans.__('Ended'))
  ];
}

function jobBeginning(
  trans: TranslationBundle,
  openRun: (runId: string) => void
): IColumn<keyof Schema<'Job'>>[] {
  return [
    {
      name: 'scheduler_id',
      label: trans.__('Job'),
      render: row => <ClippedText text={valueText(row.scheduler_id)} />
    },
    {
      name: 'name',
      label: trans.__('Name'),
      render: row => jobName(row, openRun)
    },
    {
      name: 'user',
      label: trans.__('User'),
      render: row =>
        row.mine === true
          ? trans.__('%1 (you)', valueText(row.user))
          : valueText(row.user)
    },
    stateColumn(trans),
    { name: 'queue', label: trans.__('Queue') },
    {
      name: 'accelerators',
      label: trans.__('Resources'),
      render: row => amountsText(devicesOf(row.resources))
    },
    {
      name: 'nodes',
      label: trans.__('Nodes'),
      render: row => jobNodes(row)
    },
    reasonColumn(trans)
  ];
}

function jobName(
  row: TableRow<'name' | 'run_id'>,
  openRun: (runId: string) => void
): React.ReactNode {
  const { name, run_id: runId } = row;
  const text = valueText(name);
  return typeof runId === 'string' ? (
    <button
      type="button"
      className="jp-HyperPod-link jp-HyperPod-Table-name"
      title={text}
      onClick={() => openRun(runId)}
    >
      {text}
    </button>
  ) : (
    <ClippedText text={text} />
  );
}

/** The nodes' names; how many, where it has none yet. */
function jobNodes(row: TableRow<'nodes' | 'node_count'>): string {
  const { nodes, node_count: count } = row;
  if (Array.isArray(nodes) && nodes.length > 0) {
    return nodes.join(', ');
  }
  return typeof count === 'number' ? `${count}` : '';
}
