import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { Hint, plainText } from '../components/hint';
import { Notes } from '../components/notes';
import { StateChip } from '../components/stateChip';
import { momentText } from '../components/words';
import { AdminModel } from './model';
import { MountsPicture } from './mounts';
import { StepsTable } from './stepsTable';
import { IPlan, IWork } from './types';
import {
  driftText,
  findingText,
  headingText,
  isWaitingForFolders,
  nowText,
  stateText,
  topicText
} from './words';

interface IProps {
  model: AdminModel;
  work: IWork;
  /** The form says something else by now. */
  isOther: boolean;
  /** Ask, and apply. */
  apply: (work: IWork, plan: IPlan) => void;
  isShown: () => boolean;
  trans: TranslationBundle;
}

/**
 * A plan: its summary, its steps, and its progress.
 */
export function PlanView(props: IProps): JSX.Element {
  const { trans, work } = props;
  const { asked, plan, problem } = work;
  const id = React.useId();
  return (
    <section aria-labelledby={id} className="jp-HyperPod-Admin-plan">
      <h2 id={id}>
        {asked ? headingText(asked, work, trans) : trans.__('Planned changes')}
      </h2>
      <p role="status" className="jp-HyperPod-Admin-state">
        {stateText(work, trans)}
      </p>
      <ProgressBar work={work} trans={trans} />
      {problem && <ErrorMessage error={problem} trans={trans} />}
      {plan && <Findings plan={plan} work={work} trans={trans} />}
      {plan && (
        <MountsPicture
          before={plan.before}
          after={plan.after}
          isDone={work.state === 'applied'}
          trans={trans}
        />
      )}
      {plan && <Waits plan={plan} trans={trans} />}
      <Buttons {...props} />
      {plan && <Details {...props} plan={plan} />}
    </section>
  );
}

function ProgressBar(props: {
  work: IWork;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { trans, work } = props;
  const { ended_at: endedAt, plan, read, results, state } = work;
  if (state === 'planning' || state === 'checking') {
    return (
      <progress
        aria-label={trans.__('Profiles and spaces read')}
        max={Math.max(read.total, 1)}
        value={read.total === 0 ? undefined : read.done}
      />
    );
  }
  if (state === 'applying' || state === 'stopping') {
    return (
      <progress
        aria-label={trans.__('Completed steps')}
        max={Math.max(plan?.counts.to_do ?? 0, 1)}
        value={results.done + results.failed}
      />
    );
  }
  return (
    <p className="jp-HyperPod-count">
      {trans.__('As of %1', momentText(endedAt))}
    </p>
  );
}

/** What is wrong, or has to be known before. */
function Findings(props: {
  plan: IPlan;
  work: IWork;
  trans: TranslationBundle;
}): JSX.Element {
  const { plan, trans, work } = props;
  return (
    <>
      {isWaitingForFolders(work.asked, plan) && (
        <Notes
          notes={[
            trans.__(
              'User profiles wait for their folders. The timer on the Slurm controller creates them within about six minutes. Without the timer, choose what creates them under “More”, then preview the changes again.'
            )
          ]}
        />
      )}
      {plan.findings.length > 0 && (
        <ul
          className="jp-HyperPod-Admin-findings"
          aria-label={trans.__('Findings')}
        >
          {plan.findings.map(({ code, hint, level, message }) => (
            <li key={`${code} ${message}`} data-level={level}>
              <strong>{findingText(level, trans)}</strong>
              {`: ${message}`}
              {hint && <Hint hint={hint} trans={trans} />}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Names in a line; of more it says how many. */
const MOST_NAMES = 5;

/** What sees the change only after a restart. */
function Waits(props: {
  plan: IPlan;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { plan, trans } = props;
  const { restarts } = plan;
  if (restarts.length === 0) {
    return null;
  }
  const names = restarts.slice(0, MOST_NAMES).map(({ target }) => target);
  const more = restarts.length - names.length;
  return (
    <p>
      <strong>{trans.__('After a restart:')}</strong>{' '}
      {more > 0
        ? trans.__('%1 and %2 more', names.join(', '), more)
        : names.join(', ')}
    </p>
  );
}

/** All of it, for who wants to know. */
function Details(props: IProps & { plan: IPlan }): JSX.Element {
  const { isShown, model, plan, trans, work } = props;
  const isPlanned = ['planned', 'checking'].includes(work.state);
  const { as_wanted: asWanted, blocked, to_do: toDo, waits } = plan.counts;
  return (
    <>
      <details className="jp-HyperPod-Admin-effects">
        <summary>{trans.__('Effects on files, access and apps')}</summary>
        {/* Once something was done it was so. */}
        {isPlanned && <Drift plan={plan} trans={trans} />}
        <Statements plan={plan} work={work} trans={trans} />
      </details>
      {/* The result of each step matters while the plan is applied. */}
      <details className="jp-HyperPod-Admin-steps" open={!isPlanned}>
        <summary>
          {trans._n('%1 step', '%1 steps', asWanted + blocked + toDo + waits)}
        </summary>
        <StepsTable
          client={model.client}
          work={work}
          isShown={isShown}
          trans={trans}
        />
      </details>
    </>
  );
}

/** What it means for people, under a heading for each topic. */
function Statements(props: {
  plan: IPlan;
  work: IWork;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { plan, trans, work } = props;
  const id = React.useId();
  const topics = [...new Set(plan.statements.map(({ topic }) => topic))];
  return topics.length === 0 ? null : (
    <section aria-labelledby={id}>
      <h3 id={id}>
        {work.state === 'applied'
          ? trans.__('Effects')
          : trans.__('Effects of these changes')}
      </h3>
      <dl className="jp-HyperPod-Admin-statements">
        {topics.map(topic => (
          <div key={topic}>
            <dt>{topicText(topic, trans)}</dt>
            {plan.statements
              .filter(one => one.topic === topic)
              .map(({ text }) => (
                <dd key={text}>{plainText(text)}</dd>
              ))}
          </div>
        ))}
      </dl>
    </section>
  );
}

/** How things are by now, and how many of them are not as wanted. */
function Drift(props: { plan: IPlan; trans: TranslationBundle }): JSX.Element {
  const { plan, trans } = props;
  return (
    <>
      <p>
        <strong>{trans.__('Current state:')}</strong> {nowText(plan.now, trans)}
      </p>
      <ul className="jp-HyperPod-Admin-drift" aria-label={trans.__('Progress')}>
        {plan.drift.map(drift => (
          <li key={drift.kind}>
            <StateChip
              state={drift.differ === 0 ? 'as-wanted' : 'to-do'}
              text={driftText(drift, trans)}
              trans={trans}
            />
          </li>
        ))}
      </ul>
    </>
  );
}

function Buttons(props: IProps): JSX.Element | null {
  const { apply, isOther, model, trans, work } = props;
  const { asked, plan, state } = work;
  if (model.isBusy) {
    return (
      <div className="jp-HyperPod-Admin-buttons">
        <button
          type="button"
          className="jp-HyperPod-button"
          disabled={state === 'stopping'}
          onClick={() => void model.cancel()}
        >
          {trans.__('Stop')}
        </button>
      </div>
    );
  }
  if (plan === null || asked === null || state !== 'planned') {
    return null;
  }
  const isRefused = plan.findings.some(({ level }) => level === 'error');
  const isBack = asked.mode === null;
  const look = isBack ? ' jp-mod-warn' : isOther ? '' : ' jp-mod-accept';
  return (
    <div className="jp-HyperPod-Admin-buttons">
      <button
        type="button"
        className={`jp-HyperPod-button${look}`}
        disabled={isOther || isRefused || plan.counts.to_do === 0}
        onClick={() => apply(work, plan)}
      >
        {isBack ? trans.__('Remove…') : trans.__('Apply changes…')}
      </button>
      {isOther && (
        <span role="note">
          {trans.__(
            'You changed the form since this preview. Preview the changes again, then apply them.'
          )}
        </span>
      )}
    </div>
  );
}
