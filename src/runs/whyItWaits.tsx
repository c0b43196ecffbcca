import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { useTick } from '../components/useTick';
import { momentText } from '../components/words';
import { IWaitReason } from './client';
import { IRun } from './types';
import { secondsBetween, sentenceText, spanText } from './words';

/** More are only counted. */
const MOST = 8;

/** Older data does not say what would start now. */
const FRESH_S = 15;

/** A change with which a waiting run would start now. */
export type IStartNow = IWaitReason['would_start_now'][number];

type IBlocker = IWaitReason['blockers'][number];

/**
 * What shows why a run waits.
 */
export interface IWhyProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Asks the cluster. */
  readonly load: () => Promise<IWaitReason>;
  /** Starts the run in another way; null for a run of another user. */
  readonly switchTo: ((change: IStartNow) => Promise<void>) | null;
  readonly openRun: (runId: string) => void;
}

/**
 * Why a run waits: its place, who holds what it needs, and what would start now. The cluster is asked when this is first shown, when the reason
 * changes, and when the user wants it.
 */
export function WhyItWaits(props: IWhyProps): JSX.Element {
  const { load, run, trans } = props;
  const timed = React.useCallback(
    async () => ({ told: await load(), at: new Date().toISOString() }),
    [load]
  );
  const { error, renew, value } = useLoaded(timed);
  useRenewed(`${run.reason}`, renew);
  const age = value ? secondsBetween(value.at, null) : 0;
  useTick(value !== null);
  const reason = value?.told.reason ?? run.reason;
  return (
    <section className="jp-HyperPod-Why" aria-label={trans.__('Why it waits')}>
      <div className="jp-HyperPod-Why-head">
        <h2>
          {reason
            ? sentenceText(reason)
            : value || error
              ? trans.__('The reason is unknown.')
              : trans.__('Waiting')}
        </h2>
        <span className="jp-HyperPod-Why-age">
          {value
            ? trans.__('Updated %1 ago', spanText(age, trans))
            : !error && trans.__('Loading from the cluster…')}
        </span>
        <button type="button" className="jp-HyperPod-button" onClick={renew}>
          {trans.__('Refresh')}
        </button>
      </div>
      {error && <ErrorMessage error={error} trans={trans} />}
      {value && (
        <Answer {...props} told={value.told} age={age} checkAgain={renew} />
      )}
    </section>
  );
}

/** Reads again when something is another than before. */
function useRenewed(stamp: string, renew: () => void): void {
  const before = React.useRef(stamp);
  React.useEffect(() => {
    if (before.current !== stamp) {
      before.current = stamp;
      renew();
    }
  });
}

interface IAnswerProps extends IWhyProps {
  readonly told: IWaitReason;
  /** Seconds since the answer. */
  readonly age: number;
  readonly checkAgain: () => void;
}

function Answer(props: IAnswerProps): JSX.Element {
  const { openRun, told, trans } = props;
  return (
    <>
      <StartNow {...props} />
      <dl className="jp-HyperPod-facts">
        <Place told={told} trans={trans} />
        {told.expected_start !== null && (
          <div>
            <dt>{trans.__('Expected start')}</dt>
            <dd>
              {momentText(told.expected_start)}
              {startsIn(told.expected_start, trans)}
            </dd>
          </div>
        )}
        {told.blockers.length === 0 && <Holders told={told} trans={trans} />}
      </dl>
      {told.blockers.length > 0 && (
        <Blockers blockers={told.blockers} openRun={openRun} trans={trans} />
      )}
    </>
  );
}

function startsIn(moment: string, trans: TranslationBundle): string {
  const seconds = (Date.parse(moment) - Date.now()) / 1000;
  return seconds > 0 ? ` (${trans.__('in %1', spanText(seconds, trans))})` : '';
}

interface IToldProps {
  readonly told: IWaitReason;
  readonly trans: TranslationBundle;
}

/** Changes with which the run would start now, each a button. */
function StartNow(props: IAnswerProps): JSX.Element | null {
  const { age, checkAgain, load, switchTo, told, trans } = props;
  const isFresh = age < FRESH_S;
  const stillStarts = ({ text }: IStartNow) =>
    load().then(
      answer => answer.would_start_now.some(one => one.text === text),
      () => false // the check that follows says why
    );
  const [isBusy, setBusy] = React.useState(false);
  const { tried, would_start_now: changes } = told;
  if (tried === 0 || switchTo === null) {
    return null;
  }
  if (changes.length === 0) {
    return (
      <p className="jp-HyperPod-Why-start">
        {trans._n(
          'The smaller size that was tried could not start it sooner.',
          'None of the %1 alternatives that were tried could start it sooner.',
          tried
        )}
      </p>
    );
  }
  // An older answer promises nothing: then the button asks the cluster first.
  const change = async (wanted: IStartNow) => {
    if (isFresh || (await stillStarts(wanted))) {
      await switchTo(wanted);
    } else {
      checkAgain();
    }
  };
  return (
    <p className="jp-HyperPod-Why-start">
      {isFresh
        ? trans.__('Could start now:')
        : trans.__('Could have started %1 ago:', spanText(age, trans))}
      {changes.map(one => (
        <button
          key={one.text}
          type="button"
          title={trans.__(
            'Changes the waiting run. If its size changes, it is submitted again and this one is cancelled.'
          )}
          className="jp-HyperPod-button jp-mod-accept"
          disabled={isBusy}
          onClick={() => {
            setBusy(true);
            void change(one).finally(() => setBusy(false));
          }}
        >
          {switchText(one, trans)}
        </button>
      ))}
    </p>
  );
}

/** The words of the button that makes a change. */
export function switchText(
  change: IStartNow,
  trans: TranslationBundle
): string {
  const { gpus_per_node: gpus, nodes, queue, time_limit: limit } = change;
  if (queue !== null && nodes === null && gpus === null && limit === null) {
    return trans.__('Move to %1', queue);
  }
  const parts = [
    nodes === null ? '' : trans._n('%1 node', '%1 nodes', nodes),
    gpus === null ? '' : trans.__('%1 GPUs per node', gpus),
    queue === null ? '' : trans.__('queue %1', queue),
    limit === null ? '' : trans.__('limit %1', spanText(limit, trans))
  ];
  return trans.__('Switch to %1', parts.filter(Boolean).join(', '));
}

function Place({ told, trans }: IToldProps): JSX.Element | null {
  const { ahead, counted, position } = told;
  if (position === null) {
    return null;
  }
  const before = ahead.slice(0, MOST).join(', ');
  const left = position - 1 - Math.min(ahead.length, MOST);
  return (
    <div>
      <dt>{trans.__('Queue position')}</dt>
      <dd title={counted ?? undefined}>
        {position}
        {before !== '' && ` (${trans.__('after %1', before)})`}
        {before !== '' && left > 0 && ` ${trans.__('and %1 more', left)}`}
      </dd>
    </div>
  );
}

function Holders({ told, trans }: IToldProps): JSX.Element | null {
  if (told.holders.length === 0) {
    return null;
  }
  const left = told.holders.length - MOST;
  return (
    <div>
      <dt>{trans.__('In use by')}</dt>
      <dd>
        <ul>
          {told.holders.slice(0, MOST).map(holder => (
            <li key={holder.user}>{holderText(holder, trans)}</li>
          ))}
          {left > 0 && <li>{trans.__('and %1 more', left)}</li>}
        </ul>
      </dd>
    </div>
  );
}

function holderText(
  holder: IWaitReason['holders'][number],
  trans: TranslationBundle
): string {
  const { accelerators, jobs, nodes, user } = holder;
  const parts = [
    accelerators > 0
      ? trans._n('%1 accelerator', '%1 accelerators', accelerators)
      : '',
    trans._n('%1 node', '%1 nodes', nodes),
    trans._n('%1 job', '%1 jobs', jobs)
  ];
  return `${user}: ${parts.filter(Boolean).join(', ')}`;
}

/** The jobs that hold what the run needs, the first to end first. */
function Blockers(props: {
  blockers: readonly IBlocker[];
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { blockers, openRun, trans } = props;
  const hasGpus = blockers.some(one => one.accelerators > 0);
  const hasEnds = blockers.some(one => one.ends_at !== null);
  return (
    <table className="jp-HyperPod-Why-blockers">
      <thead>
        <tr>
          <th scope="col">{trans.__('In use by')}</th>
          <th scope="col">{trans.__('User')}</th>
          <th scope="col" className="jp-mod-number">
            {trans.__('Nodes')}
          </th>
          {hasGpus && (
            <th scope="col" className="jp-mod-number">
              {trans.__('GPUs')}
            </th>
          )}
          {hasEnds && <th scope="col">{trans.__('Ends at the latest')}</th>}
        </tr>
      </thead>
      <tbody>
        {blockers.slice(0, MOST).map(one => (
          <tr key={one.job}>
            <td>
              <BlockerName blocker={one} openRun={openRun} />
            </td>
            <td>{one.user}</td>
            <td className="jp-mod-number">{one.nodes}</td>
            {hasGpus && <td className="jp-mod-number">{one.accelerators}</td>}
            {hasEnds && <td>{endText(one, trans)}</td>}
          </tr>
        ))}
        {blockers.length > MOST && (
          <tr>
            <td>{trans.__('and %1 more', blockers.length - MOST)}</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function BlockerName(props: {
  blocker: IBlocker;
  openRun: (runId: string) => void;
}): JSX.Element {
  const { blocker, openRun } = props;
  const { job, name, run_id: runId } = blocker;
  return runId === null ? (
    <span title={job}>{name || job}</span>
  ) : (
    <button
      type="button"
      className="jp-HyperPod-link"
      title={runId}
      onClick={() => openRun(runId)}
    >
      {name || runId}
    </button>
  );
}

function endText({ ends_at: end }: IBlocker, trans: TranslationBundle): string {
  if (end === null) {
    return trans.__('no limit');
  }
  const seconds = (Date.parse(end) - Date.now()) / 1000;
  return trans.__('in %1', spanText(seconds, trans));
}
