import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { momentColumn } from '../clusters/cells';
import { IColumn } from '../clusters/serverTable';
import { TableRow, valueText } from '../clusters/types';
import { StateChip } from '../components/stateChip';

type Column = IColumn<keyof Schema<'HyperpodEvent'>>;
type Row = TableRow<keyof Schema<'HyperpodEvent'>>;

/** How bad an event is, in a word. */
export function levelText(level: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    info: trans.__('information'),
    warn: trans.__('warning'),
    error: trans.__('error')
  };
  return texts[level] ?? level;
}

/** What an event is of. */
export function resourceText(
  resource: string,
  trans: TranslationBundle
): string {
  const texts: Readonly<Record<string, string>> = {
    cluster: trans.__('cluster'),
    group: trans.__('instance group'),
    instance: trans.__('instance')
  };
  return texts[resource] ?? resource;
}

/**
 * The columns of a HyperPod cluster's events.
 *
 * @param show - shows the details of an event, by its id
 */
export function eventColumns(
  show: (id: string) => void,
  trans: TranslationBundle
): Column[] {
  return [
    momentColumn('time', trans.__('Time')),
    {
      name: 'level',
      label: trans.__('Level'),
      render: row => <LevelChip level={valueText(row.level)} trans={trans} />
    },
    { name: 'group', label: trans.__('Instance group'), optional: true },
    { name: 'instance', label: trans.__('Instance'), optional: true },
    {
      name: 'description',
      label: trans.__('Event'),
      render: row => <EventText row={row} show={show} trans={trans} />
    },
    {
      name: 'reason',
      label: trans.__('Reason'),
      optional: true,
      render: row => valueText(row.reason)
    }
  ];
}

/** The level of an event, as a word with a shape; nothing where AWS says none. */
export function LevelChip(props: {
  level: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { level, trans } = props;
  return level === '' ? null : (
    <StateChip
      state={`level-${level}`}
      text={levelText(level, trans)}
      trans={trans}
    />
  );
}

/** What happened; a click shows the details. */
function EventText(props: {
  row: Row;
  show: (id: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { row, show, trans } = props;
  const times = typeof row.times === 'number' ? row.times : 1;
  return (
    <span className="jp-HyperPod-Table-text">
      <button
        type="button"
        className="jp-HyperPod-link"
        title={trans.__('Show event details')}
        onClick={() => show(valueText(row.event_id))}
      >
        {valueText(row.description) || trans.__('(no message)')}
      </button>
      {times > 1 && ` ${trans._n('(%1 time)', '(%1 times)', times)}`}
    </span>
  );
}
