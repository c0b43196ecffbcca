import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { StateChip } from '../components/stateChip';
import { momentText } from '../components/words';
import { AdminModel } from './model';
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
 * A plan: what it means, its steps, and how far it is.
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
      {plan && <Meaning plan={plan} work={work} trans={trans} />}
      <Buttons {...props} />
      {plan && (
        <StepsTable
          client={props.model.client}
          work={work}
          isShown={props.isShown}
          trans={trans}
        />
      )}
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

/** What is to be said of the whole. */
function Meaning(props: {
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
              'User profiles wait for their folders. No machine is set to check them, and unchecked folders are not mounted.'
            ),
            trans.__(
              'Under “More”, choose what creates the folders: the Jupyter server if it mounts the whole file system, otherwise a cluster job. Then preview the changes again.'
            )
          ]}
        />
      )}
      {/* Once something was done it was so. */}
      {['planned', 'checking'].includes(work.state) && (
        <Drift plan={plan} trans={trans} />
      )}
      {plan.findings.length > 0 && (
        <ul aria-label={trans.__('Findings')}>
          {plan.findings.map(({ code, hint, level, message }) => (
            <li key={`${code} ${message}`} data-level={level}>
              <strong>{findingText(level, trans)}</strong>
              {`: ${message}`}
              {hint && <div>{hint}</div>}
            </li>
          ))}
        </ul>
      )}
      <Statements plan={plan} work={work} trans={trans} />
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
                <dd key={text}>{text}</dd>
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
