import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useLoaded } from '../components/useLoaded';
import { executedCell, ICellPlace } from '../logs/place';
import { IRunClient } from './client';
import { IFirstError, IRun } from './types';
import { sentenceText } from './words';

/** Number of source lines before and after the failing one. */
const AROUND = 2;

/**
 * Lines of a source, and which of them failed; all counted from 1.
 */
export interface ISourceLines {
  readonly first: number;
  readonly failed: number;
  readonly lines: readonly string[];
}

/**
 * What shows why a run failed.
 */
export interface IFailureProps {
  readonly run: IRun;
  readonly client: Pick<IRunClient, 'cells' | 'codeFile'>;
  readonly trans: TranslationBundle;
  /** In one line. */
  readonly isCompact: boolean;
  readonly showRank: (rank: number) => void;
  readonly openPlace: (place: ICellPlace) => void;
}

/**
 * Why a run failed: the exception of the rank that failed first with the lines where it was raised, else the reason.
 */
export function FailureCard(props: IFailureProps): JSX.Element {
  const { run, showRank, trans } = props;
  const error = run.attempts[run.attempts.length - 1]?.first_error;
  return (
    <div className="jp-HyperPod-Failure" role="group" aria-label={run.name}>
      {error ? (
        <RankFailure {...props} error={error} />
      ) : (
        <div className="jp-HyperPod-Failure-head">
          <p className="jp-HyperPod-Failure-what">
            {run.reason ? sentenceText(run.reason) : trans.__('Failed')}
          </p>
          {run.started_at !== null && (
            <span className="jp-HyperPod-Failure-buttons">
              <button
                type="button"
                className="jp-HyperPod-button"
                onClick={() => showRank(0)}
              >
                {trans.__('Show log')}
              </button>
            </span>
          )}
        </div>
      )}
    </div>
  );
}

function RankFailure(
  props: IFailureProps & { error: IFirstError }
): JSX.Element {
  const { error, isCompact, openPlace, showRank, trans } = props;
  const { cell, line, message, rank, traceback, type } = error;
  return (
    <>
      <div className="jp-HyperPod-Failure-head">
        <p className="jp-HyperPod-Failure-what">
          <strong>{type}</strong>
          {message && `: ${message}`}
        </p>
        <span className="jp-HyperPod-Failure-where">
          {whereText(error, trans)}
        </span>
        <span className="jp-HyperPod-Failure-buttons">
          {cell !== null && (
            <button
              type="button"
              className="jp-HyperPod-button"
              onClick={() => openPlace({ cell, line: line ?? 1 })}
            >
              {trans.__('Open cell')}
            </button>
          )}
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={() => showRank(rank)}
          >
            {trans.__('Show log of rank %1', rank)}
          </button>
        </span>
      </div>
      {!isCompact && <FailedLines {...props} />}
      {!isCompact && traceback !== '' && (
        <details className="jp-HyperPod-Failure-trace">
          <summary>{trans.__('Traceback')}</summary>
          <pre tabIndex={0}>{traceback}</pre>
        </details>
      )}
    </>
  );
}

function whereText(error: IFirstError, trans: TranslationBundle): string {
  const { cell, line, rank, traceback } = error;
  if (cell === null || line === null) {
    return trans.__('Rank %1 failed first', rank);
  }
  const executed = executedCell(traceback);
  return executed === null || executed === cell
    ? trans.__('Rank %1 failed first, in cell %2, line %3', rank, cell, line)
    : trans.__(
        'Rank %1 failed first, in cell %2, line %3, called by cell %4',
        rank,
        cell,
        line,
        executed
      );
}

function FailedLines(
  props: IFailureProps & { error: IFirstError }
): JSX.Element | null {
  const { client, error, run, trans } = props;
  const runId = run.run_id;
  // A run that is read again has the same error as another object.
  const { cell, line, traceback } = error;
  const load = React.useCallback(
    () => failedLines(client, runId, { cell, line, traceback }),
    [client, runId, cell, line, traceback]
  );
  const { value } = useLoaded(load);
  if (!value) {
    return null;
  }
  return (
    <pre
      className="jp-HyperPod-Source"
      tabIndex={0}
      aria-label={trans.__('Source of the failure')}
    >
      {value.lines.map((text, index) => {
        const number = value.first + index;
        return (
          <span key={number} data-failed={number === value.failed}>
            <span className="jp-HyperPod-Source-number">
              {number === value.failed ? '▸ ' : '  '}
              {number}
            </span>
            {text}
            {'\n'}
          </span>
        );
      })}
    </pre>
  );
}

/** A frame of a traceback on a file of the run: its path in the bundle, and the line. */
const FRAME = /File "[^"\n]*?\/((?:code|work)\/[^"\n]+)", line (\d+)/g;

/** The lines around the place where a rank failed; null where they are not known. */
export async function failedLines(
  client: IFailureProps['client'],
  runId: string,
  error: Pick<IFirstError, 'cell' | 'line' | 'traceback'>
): Promise<ISourceLines | null> {
  try {
    if (error.cell !== null && error.line !== null) {
      const cells = await client.cells(runId);
      const sent = cells.find(one => one.number === error.cell);
      return sent?.text ? around(sent.text, error.line) : null;
    }
    const frame = [...error.traceback.matchAll(FRAME)].pop();
    if (!frame) {
      return null;
    }
    const { text } = await client.codeFile(runId, frame[1]);
    return around(text, Number(frame[2]));
  } catch {
    return null; // the traceback is there still
  }
}

function around(text: string, failed: number): ISourceLines | null {
  const lines = text.split('\n');
  const first = Math.max(1, failed - AROUND);
  return failed > lines.length
    ? null
    : { first, failed, lines: lines.slice(first - 1, failed + AROUND) };
}
