import { TranslationBundle } from '@jupyterlab/translation';
import { redoIcon, stopIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { shareText } from '../clusters/bar';
import { IMenuEntry, openMenu } from '../components/menu';
import { StateIcon } from '../components/stateIcon';
import type { IRows } from '../components/useRows';
import {
  agoText,
  durationText,
  momentText,
  stateText
} from '../components/words';
import { canCancel } from '../runs/listMenu';
import { IRun } from '../runs/types';
import { clockText } from '../runs/words';
import type { IRunNumbers } from '../training/client';
import { NumbersCell } from '../training/numbersCell';
import { alarmText, leftText } from '../training/words';
import type { IPanelActions } from './actions';

/**
 * A run in one or two short lines: its time against the limit, or how and when it ended.
 */
export function RunRow(props: {
  run: IRun;
  /** Its name, which no other has. */
  name: string;
  /** What it prints. */
  numbers: IRunNumbers | undefined;
  /** Its time limit in seconds, if known. */
  limit: number | null;
  row: ReturnType<IRows['rowProps']>;
  entries: () => readonly (IMenuEntry | null)[];
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, entries, limit, name, numbers, row, run, trans } = props;
  const { runAgain } = actions;
  return (
    <li
      className="jp-HyperPod-Row"
      data-state={run.state}
      onContextMenu={event => {
        event.preventDefault();
        event.stopPropagation();
        openMenu(entries(), { x: event.clientX, y: event.clientY });
      }}
    >
      <button
        type="button"
        className="jp-HyperPod-Row-main"
        title={hintOf(run, trans)}
        {...row}
      >
        <StateIcon state={run.state} trans={trans} />
        <span className="jp-HyperPod-Row-name">{name}</span>
        <span className="jp-HyperPod-Row-end">{endText(run, trans)}</span>
        <SecondLine run={run} limit={limit} numbers={numbers} trans={trans} />
      </button>
      <span className="jp-HyperPod-Row-actions">
        {canCancel(run) && (
          <RowAction
            icon={stopIcon}
            label={trans.__('Cancel run')}
            run={() => actions.cancel([run])}
          />
        )}
        {runAgain && (
          <RowAction
            icon={redoIcon}
            label={trans.__('Run again')}
            run={() => runAgain(run)}
          />
        )}
      </span>
    </li>
  );
}

/** Not a tab stop: the context menu has it for the keyboard. */
function RowAction(props: {
  icon: typeof stopIcon;
  label: string;
  run: () => void;
}): JSX.Element {
  const { icon, label, run } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-IconButton"
      tabIndex={-1}
      title={label}
      aria-label={label}
      onClick={run}
    >
      <icon.react tag="span" width="16px" height="16px" />
    </button>
  );
}

/** Where it is, or how long it took and when that was. */
function endText(run: IRun, trans: TranslationBundle): string {
  const { ended_at: ended, started_at: started, submitted_at: sent } = run;
  if (ended === null) {
    return run.state === 'running' || sent === null
      ? run.cluster
      : agoText(sent, trans);
  }
  const took = durationText(started, ended, trans);
  return [took, agoText(ended, trans)].filter(Boolean).join(' · ');
}

function SecondLine(props: {
  run: IRun;
  limit: number | null;
  numbers: IRunNumbers | undefined;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { limit, numbers, run, trans } = props;
  const { reason, started_at: started, state } = run;
  if (state === 'running' && started !== null) {
    const seconds = (Date.now() - Date.parse(started)) / 1000;
    return (
      <span className="jp-HyperPod-Row-detail">
        {limit !== null && (
          <span className="jp-HyperPod-Progress" aria-hidden="true">
            <span
              className="jp-HyperPod-Progress-part"
              style={{ width: shareText(Math.max(0, seconds), limit) }}
            />
          </span>
        )}
        <span className="jp-HyperPod-Row-clock">
          {limit === null
            ? clockText(seconds)
            : trans.__('%1 / %2', clockText(seconds), clockText(limit))}
        </span>
        {reason && <span className="jp-HyperPod-Row-words">{reason}</span>}
        <NumbersCell numbers={numbers} />
        {numbers && (
          <span className="jp-HyperPod-Row-words">
            {numbers.summary.alarms.length > 0
              ? alarmText(numbers.summary.alarms[0], trans)
              : leftText(numbers.summary, trans)}
          </span>
        )}
      </span>
    );
  }
  if (state === 'succeeded') {
    return null;
  }
  const words =
    reason ?? (state === 'cancelled' ? '' : stateText(state, trans));
  return words ? (
    <span className="jp-HyperPod-Row-detail">
      <span className="jp-HyperPod-Row-words">{words}</span>
    </span>
  ) : null;
}

function hintOf(run: IRun, trans: TranslationBundle): string {
  const { cluster, queue, reason, run_id: runId, submitted_at: sent } = run;
  return [
    runId,
    queue === null ? cluster : `${cluster} · ${queue}`,
    sent === null ? '' : trans.__('Submitted %1', momentText(sent)),
    reason ?? ''
  ]
    .filter(Boolean)
    .join('\n');
}
