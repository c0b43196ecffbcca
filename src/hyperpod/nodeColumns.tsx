import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import {
  ClippedText,
  momentColumn,
  reasonColumn,
  share
} from '../clusters/cells';
import { IColumn } from '../clusters/serverTable';
import { clusterStateText } from '../clusters/states';
import { TableRow, valueText } from '../clusters/types';
import { StateChip } from '../components/stateChip';
import { hyperpodStateText, imageStatusText } from './words';

type Column = IColumn<keyof Schema<'HyperpodNode'>>;
type Row = TableRow<keyof Schema<'HyperpodNode'>>;

/** The columns of a HyperPod cluster's nodes: what AWS knows, then what the scheduler does. */
export function hyperpodNodeColumns(trans: TranslationBundle): Column[] {
  return [
    { name: 'name', label: trans.__('Instance') },
    {
      name: 'state',
      label: trans.__('State'),
      render: row => (
        <StateChip
          state={valueText(row.state)}
          text={hyperpodStateText(valueText(row.state), trans)}
          reason={typeof row.reason === 'string' ? row.reason : null}
          trans={trans}
        />
      )
    },
    reasonColumn(trans),
    { name: 'instance_group', label: trans.__('Instance group') },
    { name: 'instance_type', label: trans.__('Instance type') },
    ...schedulerColumns(trans),
    momentColumn('launched_at', trans.__('Launched')),
    {
      name: 'image_version',
      label: trans.__('Version'),
      optional: true
    },
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

function schedulerColumns(trans: TranslationBundle): Column[] {
  return [
    { name: 'node', label: trans.__('Node'), optional: true },
    {
      name: 'scheduler_state',
      label: trans.__('Scheduler'),
      optional: true,
      render: row => schedulerState(row, trans)
    },
    {
      name: 'accelerators_free',
      label: trans.__('Accelerators free'),
      optional: true,
      render: row => share(row.accelerators_free, row.accelerators, trans)
    },
    {
      name: 'jobs',
      // Not "Jobs": the id 6 would read as six of them.
      label: trans.__('Job ids'),
      optional: true,
      render: row => clipped(row.jobs)
    }
  ];
}

function clipped(value: Row['host']): React.ReactNode {
  const text = valueText(value);
  return text && <ClippedText text={text} />;
}

function schedulerState(row: Row, trans: TranslationBundle): React.ReactNode {
  const state = valueText(row.scheduler_state);
  return (
    state && (
      <StateChip
        state={state}
        text={clusterStateText(state, trans)}
        reason={valueText(row.scheduler_reason) || null}
        trans={trans}
      />
    )
  );
}
