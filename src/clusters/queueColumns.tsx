import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { hoursText, reasonColumn, share, stateColumn } from './cells';
import { devicesText } from './devices';
import { QuotaBars } from './quotas';
import { IColumn } from './serverTable';
import { CellValue, devicesOf, quotasOf, TableRow, valueText } from './types';

/** The columns of a cluster's queues. */
export function queueColumns(
  trans: TranslationBundle
): IColumn<keyof Schema<'Queue'>>[] {
  return [
    {
      name: 'name',
      label: trans.__('Queue'),
      render: row =>
        row.default === true
          ? trans.__('%1 (default)', valueText(row.name))
          : valueText(row.name)
    },
    stateColumn(trans),
    reasonColumn(trans),
    ...quotaColumns(trans),
    {
      name: 'nodes_free',
      label: trans.__('Nodes free'),
      optional: true,
      render: row => share(row.nodes_free, row.nodes, trans)
    },
    {
      name: 'slots_free',
      label: trans.__('Slots free'),
      optional: true,
      render: row => share(row.slots_free, row.slots, trans)
    },
    {
      name: 'accelerators_free',
      label: trans.__('GPUs free'),
      optional: true,
      // The quota says the same of them.
      render: row =>
        hasQuota(row) ? '' : devicesText(devicesOf(row.resources), trans)
    },
    {
      name: 'cpus_free',
      label: trans.__('CPUs free'),
      optional: true,
      render: row =>
        hasQuota(row) ? '' : share(row.cpus_free, row.cpus, trans)
    },
    ...ruleColumns(trans)
  ];
}

/** What jobs get of a queue that has quota, not nodes. */
function quotaColumns(
  trans: TranslationBundle
): IColumn<keyof Schema<'Queue'>>[] {
  return [
    {
      name: 'quotas',
      label: trans.__('Quota'),
      optional: true,
      render: row => {
        const quotas = quotasOf(row.quotas);
        return quotas.length > 0 ? (
          <QuotaBars quotas={quotas} trans={trans} />
        ) : null;
      }
    },
    {
      name: 'cluster_queue',
      label: trans.__('Quota from'),
      optional: true
    }
  ];
}

function ruleColumns(
  trans: TranslationBundle
): IColumn<keyof Schema<'Queue'>>[] {
  return [
    { name: 'running', label: trans.__('Running') },
    { name: 'waiting', label: trans.__('Waiting') },
    {
      name: 'time_limit',
      label: trans.__('Time limit'),
      optional: true,
      // Where quota is given no queue has a limit, which needs no word.
      render: row =>
        hoursText(row.time_limit, trans) ||
        (hasQuota(row) ? '' : trans.__('none'))
    },
    {
      name: 'default_time',
      label: trans.__('Default time limit'),
      optional: true,
      render: row => hoursText(row.default_time, trans)
    },
    {
      name: 'max_nodes',
      label: trans.__('Max. nodes per job'),
      optional: true
    },
    { name: 'priority', label: trans.__('Priority'), optional: true },
    {
      name: 'usable',
      label: trans.__('Allowed users'),
      optional: true,
      render: row =>
        hasQuota(row) && row.usable !== false ? '' : whoText(row, trans)
    }
  ];
}

function hasQuota(row: TableRow<'cluster_queue'>): boolean {
  return typeof row.cluster_queue === 'string';
}

/** Whom a queue is for. */
function whoText(
  row: TableRow<'usable' | 'groups' | 'accounts' | 'qos' | 'denied'>,
  trans: TranslationBundle
): string {
  const parts = [
    namesText(row.groups, names => trans.__('groups: %1', names)),
    namesText(row.accounts, names => trans.__('accounts: %1', names)),
    namesText(row.qos, names => trans.__('QoS: %1', names)),
    namesText(row.denied, names => trans.__('not: %1', names))
  ].filter(part => part !== '');
  const who = parts.length > 0 ? parts.join('; ') : trans.__('all users');
  return row.usable === false ? trans.__('not you (%1)', who) : who;
}

function namesText(
  value: CellValue | undefined,
  say: (names: string) => string
): string {
  return Array.isArray(value) && value.length > 0 ? say(value.join(', ')) : '';
}
