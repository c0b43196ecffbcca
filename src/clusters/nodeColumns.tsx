import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { momentText } from '../components/words';
import { share, stateColumn, wrapped } from './cells';
import { DeviceSquares, othersText } from './devices';
import { IColumn } from './serverTable';
import { devicesOf, TableRow, valueText } from './types';

const GIB = 1024 ** 3;

/** Of more jobs on a node it is said how many. */
const MOST_JOBS = 4;

/** States of nodes that take new jobs. */
const USABLE = new Set(['up', 'reserved', 'powered-off', 'starting']);

/** The columns of a cluster's nodes. */
export function nodeColumns(
  trans: TranslationBundle
): IColumn<keyof Schema<'ClusterNode'>>[] {
  return [
    { name: 'name', label: trans.__('Node') },
    stateColumn(trans),
    {
      name: 'reason',
      label: trans.__('Reason'),
      optional: true,
      render: row => nodeReason(row, trans)
    },
    {
      name: 'accelerators_free',
      label: trans.__('Accelerators free'),
      render: row => nodeDevices(row, trans)
    },
    {
      name: 'resources',
      label: trans.__('Other resources free'),
      optional: true,
      render: row => othersText(devicesOf(row.resources), trans)
    },
    {
      name: 'cpus_free',
      label: trans.__('CPUs free'),
      render: row => share(row.cpus_free, row.cpus, trans)
    },
    {
      name: 'cpu_load',
      label: trans.__('Load'),
      optional: true,
      render: row =>
        typeof row.cpu_load === 'number' ? row.cpu_load.toFixed(1) : ''
    },
    ...placeColumns(trans)
  ];
}

function placeColumns(
  trans: TranslationBundle
): IColumn<keyof Schema<'ClusterNode'>>[] {
  return [
    {
      name: 'memory',
      label: trans.__('Memory'),
      render: row => memoryText(row, trans)
    },
    {
      name: 'instance_type',
      label: trans.__('Instance type'),
      optional: true
    },
    {
      name: 'instance_group',
      label: trans.__('Instance group'),
      optional: true
    },
    { name: 'features', label: trans.__('Features'), optional: true },
    { name: 'queues', label: trans.__('Queues'), optional: true },
    {
      name: 'jobs',
      label: trans.__('Jobs'),
      render: row => nodeJobs(row, trans)
    }
  ];
}

function nodeDevices(
  row: TableRow<'accelerators' | 'accelerators_free' | 'resources' | 'state'>,
  trans: TranslationBundle
): React.ReactNode {
  const devices = devicesOf(row.resources);
  return devices.length > 0 ? (
    <DeviceSquares
      devices={devices}
      usable={USABLE.has(valueText(row.state))}
      trans={trans}
    />
  ) : (
    share(row.accelerators_free, row.accelerators, trans)
  );
}

/** Why a node is not as it should be, since when and who says so. */
function nodeReason(
  row: TableRow<'reason' | 'reason_by' | 'reason_since'>,
  trans: TranslationBundle
): React.ReactNode {
  const { reason, reason_by: by, reason_since: since } = row;
  if (typeof reason !== 'string') {
    return null;
  }
  const text =
    typeof by === 'string' && typeof since === 'string'
      ? trans.__('%1 (%2, %3)', reason, by, momentText(since))
      : reason;
  return wrapped(text);
}

/** The first jobs on a node; the pointer shows all. */
function nodeJobs(
  row: TableRow<'jobs'>,
  trans: TranslationBundle
): React.ReactNode {
  const all = valueText(row.jobs);
  const names = all === '' ? [] : all.split(', ');
  const left = names.length - MOST_JOBS;
  const shown = names.slice(0, MOST_JOBS).join(', ');
  return (
    <span className="jp-HyperPod-Table-text" title={all}>
      {left > 0 ? trans.__('%1 and %2 more', shown, left) : shown}
    </span>
  );
}

function memoryText(
  row: TableRow<'memory' | 'memory_free'>,
  trans: TranslationBundle
): string {
  const { memory, memory_free: free } = row;
  if (typeof memory !== 'number') {
    return '';
  }
  const all = Math.round(memory / GIB);
  return typeof free === 'number'
    ? trans.__('%1 of %2 GiB free', Math.round(free / GIB), all)
    : trans.__('%1 GiB', all);
}
