import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IRun } from './types';
import { useTick } from '../components/useTick';
import { durationText, momentText } from '../components/words';

interface IFact {
  readonly name: string;
  readonly value: string;
}

/**
 * A run's times, nodes, attempts and paths.
 */
export function RunFacts(props: {
  run: IRun;
  trans: TranslationBundle;
  /** Of a run that is no more nobody knows how long it runs. */
  isRemoved?: boolean;
}): JSX.Element {
  const { isRemoved, run, trans } = props;
  // Nor does one that waits for its next attempt.
  const isGoing = !isRemoved && run.state !== 'waiting';
  const isTimed = run.ended_at !== null || isGoing;
  useTick(run.started_at !== null && run.ended_at === null && isTimed);
  const facts = factsOf(run, trans, isTimed).filter(fact => fact.value !== '');
  return (
    <dl className="jp-HyperPod-facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function factsOf(
  run: IRun,
  trans: TranslationBundle,
  isTimed: boolean
): IFact[] {
  const last = run.attempts[run.attempts.length - 1];
  const ranks = (run.nodes ?? 1) * (run.processes_per_node ?? 1);
  const nodes = last?.nodes.length
    ? last.nodes.slice(0, 8).join(', ')
    : String(run.nodes ?? '');
  return [
    { name: trans.__('Run'), value: run.run_id },
    {
      name: trans.__('User'),
      value: run.own ? '' : (run.user ?? '')
    },
    { name: trans.__('Cluster'), value: run.cluster },
    { name: trans.__('Queue'), value: run.queue ?? '' },
    { name: trans.__('Runs as space'), value: run.space ?? '' },
    { name: trans.__('Submitted'), value: momentText(run.submitted_at) },
    { name: trans.__('Started'), value: momentText(run.started_at) },
    {
      name: run.ended_at ? trans.__('Duration') : trans.__('Running for'),
      value: isTimed ? durationText(run.started_at, run.ended_at, trans) : ''
    },
    { name: trans.__('Nodes'), value: nodes },
    { name: trans.__('Processes'), value: ranks > 1 ? String(ranks) : '' },
    {
      name: trans.__('Attempt'),
      value: run.attempts.length > 1 ? String(last.number) : ''
    },
    {
      name: trans.__('Exit code'),
      value: run.exit_code === null ? '' : String(run.exit_code)
    },
    { name: trans.__('Scheduler id'), value: run.scheduler_id ?? '' },
    { name: trans.__('Kind'), value: run.kind ?? '' },
    { name: trans.__('Folder'), value: run.bundle ?? '' }
  ];
}

/**
 * The rank that failed first, and a way to its log.
 */
export function FirstError(props: {
  run: IRun;
  trans: TranslationBundle;
  show: (rank: number) => void;
}): JSX.Element | null {
  const { run, show, trans } = props;
  const error = run.attempts[run.attempts.length - 1]?.first_error;
  if (!error) {
    return null;
  }
  const what = [error.type, error.message].filter(Boolean).join(': ');
  return (
    <div className="jp-HyperPod-RunHeader-error">
      {error.line === null || error.cell === null
        ? trans.__('Rank %1 failed first: %2', error.rank, what)
        : trans.__(
            'Rank %1 failed first, in cell %2, line %3: %4',
            error.rank,
            error.cell,
            error.line,
            what
          )}{' '}
      <button
        type="button"
        className="jp-HyperPod-link"
        onClick={() => show(error.rank)}
      >
        {trans.__('Show log')}
      </button>
    </div>
  );
}
