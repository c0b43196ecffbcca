import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { momentText } from '../components/words';
import { IColumn } from './serverTable';
import { TableRow } from './types';

const GIB = 1024 ** 3;

/** The columns of a cluster's nodes. */
export function nodeColumns(trans: TranslationBundle): IColumn[] {
  return [
    { name: 'name', label: trans.__('Node') },
    stateColumn(trans),
    {
      name: 'accelerators_free',
      label: trans.__('Accelerators free'),
      render: row => share(row.accelerators_free, row.accelerators, trans)
    },
    {
      name: 'cpus_free',
      label: trans.__('CPUs free'),
      render: row => share(row.cpus_free, row.cpus, trans)
    },
    {
      name: 'memory',
      label: trans.__('Memory'),
      render: row =>
        typeof row.memory === 'number'
          ? trans.__('%1 GiB', Math.round(row.memory / GIB))
          : ''
    },
    { name: 'instance_type', label: trans.__('Instance type') },
    { name: 'instance_group', label: trans.__('Instance group') },
    { name: 'queues', label: trans.__('Queues') },
    { name: 'jobs', label: trans.__('Jobs') }
  ];
}

/** The columns of a cluster's queues. */
export function queueColumns(trans: TranslationBundle): IColumn[] {
  return [
    { name: 'name', label: trans.__('Queue') },
    stateColumn(trans),
    { name: 'nodes', label: trans.__('Nodes') },
    {
      name: 'slots_free',
      label: trans.__('Slots free'),
      render: row => share(row.slots_free, row.slots, trans)
    },
    { name: 'running', label: trans.__('Running') },
    { name: 'waiting', label: trans.__('Waiting') },
    {
      name: 'time_limit',
      label: trans.__('Time limit'),
      render: row =>
        typeof row.time_limit === 'number'
          ? trans.__('%1 h', Math.round(row.time_limit / 360) / 10)
          : trans.__('none')
    }
  ];
}

/** The columns of everybody's jobs on a cluster. */
export function jobColumns(
  trans: TranslationBundle,
  openRun: (runId: string) => void
): IColumn[] {
  return [
    { name: 'scheduler_id', label: trans.__('Job') },
    {
      name: 'name',
      label: trans.__('Name'),
      render: row => jobName(row, openRun)
    },
    { name: 'user', label: trans.__('User') },
    stateColumn(trans),
    { name: 'queue', label: trans.__('Queue') },
    { name: 'reason', label: trans.__('Reason') },
    { name: 'nodes', label: trans.__('Nodes') },
    momentColumn('submitted_at', trans.__('Submitted')),
    momentColumn('started_at', trans.__('Started'))
  ];
}

function jobName(
  row: TableRow,
  openRun: (runId: string) => void
): React.ReactNode {
  const { name, run_id: runId } = row;
  return typeof runId === 'string' ? (
    <button
      type="button"
      className="jp-HyperPod-link"
      onClick={() => openRun(runId)}
    >
      {String(name)}
    </button>
  ) : (
    String(name)
  );
}

function stateColumn(trans: TranslationBundle): IColumn {
  return {
    name: 'state',
    label: trans.__('State'),
    render: row => (
      <StateChip
        state={String(row.state)}
        reason={typeof row.reason === 'string' ? row.reason : null}
        trans={trans}
      />
    )
  };
}

function momentColumn(name: string, label: string): IColumn {
  const render = (row: TableRow): string => {
    const value = row[name];
    return typeof value === 'string' ? momentText(value) : '';
  };
  return { name, label, render };
}

function share(
  free: TableRow[string],
  all: TableRow[string],
  trans: TranslationBundle
): string {
  if (typeof all !== 'number' || all === 0) {
    return '';
  }
  return typeof free === 'number' ? trans.__('%1 of %2', free, all) : `${all}`;
}
