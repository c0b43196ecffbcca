import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useTick } from '../components/useTick';
import { durationText, momentText } from '../components/words';
import { IRunOverview } from './client';
import { IRun, isEnded } from './types';
import { secondsBetween } from './words';

/** Of more attempts the newest are drawn. */
const MOST = 8;

type PhaseKind = 'queued' | 'setup' | 'running';

/**
 * A stretch of a run's life.
 */
export interface IPhase {
  readonly key: string;
  readonly kind: PhaseKind;
  /** The state that it ended in, of the ranks' work; empty otherwise. */
  readonly state: string;
  readonly attempt: number;
  readonly begin: string;
  /** Null while it goes on. */
  readonly end: string | null;
}

/** The phases of a run, the first one first. */
export function phasesOf(run: IRun, overview: IRunOverview | null): IPhase[] {
  const phases: IPhase[] = [];
  let before = run.submitted_at ?? run.created_at;
  const attempts = run.attempts.slice(-MOST);
  for (const attempt of attempts) {
    const { number, state } = attempt;
    const times = overview?.attempts.find(one => one.number === number);
    const started = attempt.started_at ?? times?.started_at ?? null;
    if (started === null) {
      continue;
    }
    const end = attempt.ended_at ?? (isEnded(run.state) ? run.ended_at : null);
    const ranks = times?.ranks_started_at ?? null;
    const add = (kind: PhaseKind, begin: string, until: string | null) =>
      phases.push({
        key: `${number} ${kind}`,
        kind,
        state: kind === 'running' ? state : '',
        attempt: number,
        begin,
        end: until
      });
    if (attempt === attempts[0] || before < started) {
      add('queued', before, started);
    }
    add('setup', started, ranks ?? end);
    if (ranks !== null) {
      add('running', ranks, end);
    }
    before = end ?? started;
  }
  if (phases.length === 0 && isEnded(run.state) && run.ended_at !== null) {
    phases.push({
      key: 'never',
      kind: 'queued',
      state: '',
      attempt: 1,
      begin: before,
      end: run.ended_at
    });
  }
  if (run.state === 'waiting' || run.state === 'submitting') {
    const begin = before;
    const attempt = run.attempts.length + 1;
    const kind = 'queued';
    phases.push({ key: 'next', kind, state: '', attempt, begin, end: null });
  }
  return phases;
}

/**
 * A run's life as a line: queued, set up, running, once for each attempt. Stretches are as long as their times, as far as they can be read.
 */
export function TimeLine(props: {
  run: IRun;
  overview: IRunOverview | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { overview, run, trans } = props;
  const phases = phasesOf(run, overview);
  useTick(phases.some(phase => phase.end === null) && run.state !== 'unknown');
  if (phases.length === 0) {
    return null;
  }
  const isLong = run.attempts.length > 1;
  return (
    <ol className="jp-HyperPod-TimeLine" aria-label={trans.__('Time line')}>
      {phases.map(phase => {
        const { attempt, begin, end, key, kind, state } = phase;
        const label = phaseText(phase, run, trans);
        const length = durationText(begin, end, trans);
        const name = isLong ? trans.__('#%1 %2', attempt, label) : label;
        const span = `${momentText(begin)} – ${momentText(end)}`;
        return (
          <li
            key={key}
            data-kind={kind}
            data-state={state}
            data-going={end === null}
            style={{ flexGrow: Math.max(1, secondsBetween(begin, end)) }}
            title={`${name}: ${length}\n${span}`}
          >
            <span className="jp-HyperPod-TimeLine-bar" />
            <span className="jp-HyperPod-TimeLine-name">{name}</span>
            <span className="jp-HyperPod-TimeLine-length">{length}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** What a phase is called: of one that goes on, with what the node does. */
export function phaseText(
  phase: IPhase,
  { reason, reason_code: code }: IRun,
  trans: TranslationBundle
): string {
  switch (phase.kind) {
    case 'queued':
      return trans.__('Queued');
    case 'setup':
      return phase.end === null && code === 'setup' && reason !== null
        ? trans.__('Set up: %1', reason)
        : trans.__('Set up');
    default:
      return phase.end === null ? trans.__('Running') : ranText(phase, trans);
  }
}

function ranText({ state }: IPhase, trans: TranslationBundle): string {
  switch (state) {
    case 'succeeded':
      return trans.__('Ran, succeeded');
    case 'failed':
      return trans.__('Ran, failed');
    case 'cancelled':
      return trans.__('Ran, cancelled');
    default:
      return trans.__('Ran');
  }
}
