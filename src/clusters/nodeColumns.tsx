import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { StateChip } from '../components/stateChip';
import { momentText } from '../components/words';
import { imageStatusText } from './awsWords';
import { clipped, momentColumn, share, stateColumn, wrapped } from './cells';
import { DeviceSquares, othersText } from './devices';
import { IColumn } from './serverTable';
import { clusterStateText } from './states';
import { devicesOf, TableRow, valueText } from './types';

const GIB = 1024 ** 3;

/** With more jobs on a node, their number is shown. */
const MOST_JOBS = 4;

/** States of nodes that take new jobs. */
const USABLE = new Set(['up', 'reserved', 'powered-off', 'starting']);

type Column = IColumn<keyof Schema<'ClusterNode'>>;

/** The columns of a cluster's nodes: what the scheduler knows, then what AWS does. */
export function nodeColumns(trans: TranslationBundle): Column[] {
  const [gpus, ...capacity] = capacityColumns(trans);
  return [
    { name: 'name', label: trans.__('Node') },
    stateColumn(trans),
    gpus,
    {
      name: 'reason',
      label: trans.__('Reason'),
      optional: true,
      render: row => nodeReason(row, trans)
    },
    ...capacity,
    { name: 'features', label: trans.__('Features'), optional: true },
    { name: 'queues', label: trans.__('Queues'), optional: true },
    {
      name: 'jobs',
      // Not "Jobs": the id 6 would read as six of them.
      label: trans.__('Job ids'),
      optional: true,
      render: row => nodeJobs(row, trans)
    },
    ...instanceColumns(trans),
    ...machineColumns(trans)
  ];
}

/** What a node has, and how much of it is free. */
function capacityColumns(trans: TranslationBundle): Column[] {
  return [
    {
      name: 'accelerators_free',
      label: trans.__('GPUs free'),
      optional: true,
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
      optional: true,
      render: row => share(row.cpus_free, row.cpus, trans)
    },
    {
      name: 'cpu_load',
      label: trans.__('Load'),
      optional: true,
      render: row =>
        typeof row.cpu_load === 'number' ? row.cpu_load.toFixed(1) : ''
    },
    {
      name: 'memory',
      label: trans.__('Memory'),
      optional: true,
      render: row => memoryText(row, trans)
    }
  ];
}

/** Which instance a node is, and what AWS says of it. */
function instanceColumns(trans: TranslationBundle): Column[] {
  return [
    {
      name: 'instance_group',
      label: trans.__('Instance group'),
      optional: true
    },
    {
      name: 'instance_type',
      label: trans.__('Instance type'),
      optional: true
    },
    {
      name: 'instance',
      label: trans.__('Instance'),
      optional: true,
      render: row => (isBoth(row) ? valueText(row.instance) : '')
    },
    {
      name: 'instance_state',
      label: trans.__('Instance state'),
      optional: true,
      render: row =>
        isBoth(row) && typeof row.instance_state === 'string' ? (
          <StateChip
            state={row.instance_state}
            text={clusterStateText(row.instance_state, trans)}
            reason={valueText(row.instance_reason) || null}
            trans={trans}
          />
        ) : (
          ''
        )
    },
    {
      name: 'instance_reason',
      label: trans.__('Instance reason'),
      optional: true,
      render: row =>
        isBoth(row) ? wrapped(valueText(row.instance_reason)) : ''
    }
  ];
}

/** When an instance was started, and its software. */
function machineColumns(trans: TranslationBundle): Column[] {
  return [
    {
      ...momentColumn<Column['name']>('launched_at', trans.__('Launched')),
      optional: true
    },
    { name: 'image_version', label: trans.__('Version'), optional: true },
    {
      name: 'image_status',
      label: trans.__('Software'),
      optional: true,
      render: row => imageStatusText(valueText(row.image_status), trans)
    },
    {
      name: 'host',
      label: trans.__('Host'),
      optional: true,
      render: row => clipped(row.host)
    }
  ];
}

/** Whether the scheduler has the node: one that only AWS has is called by its instance id, and has AWS' state. */
function isBoth(row: TableRow<'name' | 'instance'>): boolean {
  return row.name !== row.instance;
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
  return all === '' ? null : (
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
