import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IErrorBody } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { IResults, Results } from '../components/results';
import { MOST_NODES } from './batches';
import { INodeAbility, NodeAction } from './types';
import { INodeActions, INodeOutcome } from './useNodeActions';
import {
  nodeActionCaption,
  nodeActionLabel,
  nodeActionOn,
  nodeResultText,
  whyText
} from './words';

/**
 * What can be done to the nodes that are chosen in a table; what can't, and why not; and what came of it.
 */
export function NodeActionBar(props: {
  actions: INodeActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, trans } = props;
  const { abilities, busy, outcome, problem } = actions;
  const id = React.useId();
  const known = withDenied(abilities, outcome);
  return (
    <>
      {problem.error && (
        <ErrorMessage
          error={problem.error}
          trans={trans}
          retry={problem.retry}
        />
      )}
      {known.length > 0 && (
        <Buttons id={id} abilities={known} actions={actions} trans={trans} />
      )}
      <Problems id={id} abilities={known} trans={trans} />
      {busy !== null && (
        <Progress action={busy} actions={actions} trans={trans} />
      )}
      <Results
        results={outcome && resultsOf(outcome, trans)}
        close={actions.close}
        trans={trans}
      />
    </>
  );
}

/** What AWS has just refused for want of a right can't be done either, as long as that is on the page. */
function withDenied(
  abilities: readonly INodeAbility[],
  outcome: INodeOutcome | null
): readonly INodeAbility[] {
  const denied = outcome?.results.find(
    one => one.error?.code === 'missing_right'
  );
  return abilities.map(ability =>
    denied?.error && ability.action === outcome?.action && !ability.problem
      ? { ...ability, problem: denied.error }
      : ability
  );
}

function Buttons(props: {
  id: string;
  abilities: readonly INodeAbility[];
  actions: INodeActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { abilities, actions, id, trans } = props;
  const { act, busy, count } = actions;
  return (
    <div
      className="jp-HyperPod-JobActions"
      role="group"
      aria-label={trans.__('Actions for the selected nodes')}
    >
      <span className="jp-HyperPod-count" role="status">
        {trans._n('%1 node selected', '%1 nodes selected', count)}
      </span>
      {abilities.map(({ action, problem }) => {
        // Not `disabled`: the keyboard's focus would be lost, and a screen reader would not say why.
        const isOff =
          problem !== null ||
          busy !== null ||
          count === 0 ||
          count > MOST_NODES;
        return (
          <button
            key={action}
            type="button"
            className={`jp-HyperPod-button${action === 'replace' ? ' jp-mod-warn' : ''}`}
            title={
              problem?.message ??
              (count > MOST_NODES
                ? trans.__('Select at most %1 nodes', MOST_NODES)
                : nodeActionCaption(action, trans))
            }
            aria-disabled={isOff}
            aria-describedby={problem ? problemId(id, problem) : undefined}
            onClick={() => isOff || act(action)}
          >
            {nodeActionLabel(action, trans)}
          </button>
        );
      })}
    </div>
  );
}

/** Why something can't be done, once for all that the same is in the way of. */
function Problems(props: {
  id: string;
  abilities: readonly INodeAbility[];
  trans: TranslationBundle;
}): JSX.Element {
  const { abilities, id, trans } = props;
  const problems = new Map<string, IErrorBody>();
  for (const { problem } of abilities) {
    if (problem && !problems.has(problem.code)) {
      problems.set(problem.code, problem);
    }
  }
  return (
    <>
      {[...problems.values()].map(problem => (
        <p
          key={problem.code}
          id={problemId(id, problem)}
          className="jp-HyperPod-Table-note"
          role="note"
        >
          {whyText(problem, trans)}
        </p>
      ))}
    </>
  );
}

function problemId(id: string, { code }: IErrorBody): string {
  return `${id}-${code}`;
}

/** How far it is; between two batches it can be stopped. */
function Progress(props: {
  action: NodeAction;
  actions: INodeActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { action, actions, trans } = props;
  const { count, isStopped, progress, stop } = actions;
  return (
    <div className="jp-HyperPod-JobActions">
      <span role="status">
        {progress === null
          ? trans.__('%1…', nodeActionOn(action, count, trans))
          : trans.__(
              '%1: %2 of %3 submitted',
              nodeActionOn(action, progress.total, trans),
              progress.results.length,
              progress.total
            )}
      </span>
      {progress !== null && (
        <>
          <progress
            value={progress.results.length}
            max={progress.total}
            aria-label={trans.__('Submitted nodes')}
          />
          <button
            type="button"
            className="jp-HyperPod-button"
            aria-disabled={isStopped}
            onClick={stop}
          >
            {trans.__('Stop')}
          </button>
        </>
      )}
    </div>
  );
}

/** One line for each node. */
function resultsOf(outcome: INodeOutcome, trans: TranslationBundle): IResults {
  const lines = outcome.results.map(result => ({
    key: result.name,
    failed: result.error !== null,
    text: nodeResultText(outcome.action, result, trans)
  }));
  return { lines, error: outcome.error };
}
