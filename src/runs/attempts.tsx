import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { durationText, momentText } from '../components/words';
import { IAttempt, IRun } from './types';

/** Of more the newest are shown. */
const MOST = 200;

/**
 * A run's attempts, oldest first: how each ended and why. Nothing for a run with one attempt, which the page shows itself.
 */
export function Attempts(props: {
  run: IRun;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { run, trans } = props;
  const count = run.attempts.length;
  if (count < 2) {
    return null;
  }
  const left = Math.max(0, count - MOST);
  return (
    <details className="jp-HyperPod-Children">
      <summary>{trans._n('%1 attempt', '%1 attempts', count)}</summary>
      <div className="jp-HyperPod-Children-rows" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{trans.__('Attempt')}</th>
              <th scope="col">{trans.__('State')}</th>
              <th scope="col">{trans.__('Reason')}</th>
              <th scope="col">{trans.__('Exit code')}</th>
              <th scope="col">{trans.__('Started')}</th>
              <th scope="col">{trans.__('Duration')}</th>
              <th scope="col">{trans.__('Nodes')}</th>
            </tr>
          </thead>
          <tbody>
            {run.attempts.slice(left).map(attempt => (
              <AttemptRow
                key={attempt.number}
                attempt={attempt}
                trans={trans}
              />
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function AttemptRow(props: {
  attempt: IAttempt;
  trans: TranslationBundle;
}): JSX.Element {
  const { attempt, trans } = props;
  const {
    ended_at: endedAt,
    exit_code: exitCode,
    started_at: startedAt
  } = attempt;
  return (
    <tr>
      <td>{attempt.number}</td>
      <td>
        <StateChip state={attempt.state} trans={trans} />
      </td>
      <td>{attempt.reason}</td>
      <td>{exitCode}</td>
      <td>{momentText(startedAt)}</td>
      <td>{endedAt === null ? '' : durationText(startedAt, endedAt, trans)}</td>
      <td>{attempt.nodes.join(', ')}</td>
    </tr>
  );
}
