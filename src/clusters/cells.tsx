import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { momentText, shortMomentText } from '../components/words';
import { IColumn } from './serverTable';
import { clusterStateText } from './states';
import { CellValue, TableRow, valueText } from './types';

/** The state as a word with a colour. */
export function stateColumn(trans: TranslationBundle): IColumn<'state'> {
  return {
    name: 'state',
    label: trans.__('State'),
    render: (row: TableRow<'state'> & Partial<TableRow<'reason'>>) => (
      <StateChip
        state={valueText(row.state)}
        text={clusterStateText(valueText(row.state), trans)}
        reason={typeof row.reason === 'string' ? row.reason : null}
        trans={trans}
      />
    )
  };
}

/** A time. */
export function momentColumn<N extends string>(
  name: N,
  label: string
): IColumn<N> {
  const render = (row: TableRow<N>): React.ReactNode => {
    const value = row[name];
    return typeof value === 'string' ? (
      <time dateTime={value} title={momentText(value)}>
        {shortMomentText(value)}
      </time>
    ) : (
      ''
    );
  };
  return { name, label, render };
}

/** A time limit; empty without one. */
export function hoursText(
  seconds: CellValue | undefined,
  trans: TranslationBundle
): string {
  if (typeof seconds !== 'number') {
    return '';
  }
  return seconds < 3600
    ? trans.__('%1 min', Math.round(seconds / 6) / 10)
    : trans.__('%1 h', Math.round(seconds / 360) / 10);
}

/** How many of all are free; empty where there is nothing. */
export function share(
  free: CellValue | undefined,
  all: CellValue | undefined,
  trans: TranslationBundle
): string {
  if (typeof all !== 'number' || all === 0) {
    return '';
  }
  return typeof free === 'number' ? trans.__('%1 of %2', free, all) : `${all}`;
}

/** A sentence that says why: shown whole, on several lines. */
export function reasonColumn(trans: TranslationBundle): IColumn<'reason'> {
  return {
    name: 'reason',
    label: trans.__('Reason'),
    optional: true,
    render: row => wrapped(valueText(row.reason))
  };
}

/** A text on as many lines as it needs; nothing for none. */
export function wrapped(text: string): React.ReactNode {
  return text && <span className="jp-HyperPod-Table-text">{text}</span>;
}

/** A text on one line, of which not all may be seen; nothing for none. */
export function clipped(value: CellValue | undefined): React.ReactNode {
  const text = valueText(value);
  return text && <ClippedText text={text} />;
}

/** A text of which a table shows as much as there is room for, and the pointer the rest. */
export function ClippedText(props: { text: string }): JSX.Element {
  return (
    <span className="jp-HyperPod-Table-name" title={props.text}>
      {props.text}
    </span>
  );
}
