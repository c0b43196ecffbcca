import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { momentText } from '../components/words';
import { IRun } from './types';
import { IWaitReason } from './client';

/** More are only counted. */
const MOST = 8;

/**
 * What shows why a run waits.
 */
export interface IWhyProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Asks the cluster. */
  readonly load: () => Promise<IWaitReason>;
}

/**
 * Why a run waits: its place, who holds what it needs, and what would start now. The cluster is asked once this is opened.
 */
export function WhyItWaits(props: IWhyProps): JSX.Element | null {
  const { run, trans } = props;
  const [isOpen, setOpen] = React.useState(false);
  if (run.state !== 'waiting') {
    return null;
  }
  return (
    <details
      className="jp-HyperPod-Why"
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Why it waits')}</summary>
      {isOpen && <Answer {...props} />}
    </details>
  );
}

function Answer({ load, run, trans }: IWhyProps): JSX.Element {
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  if (value === null) {
    return <p role="status">{trans.__('Loading from the cluster…')}</p>;
  }
  return (
    <>
      {/* The page says the reason that it knows already. */}
      {(value.reason === null || value.reason !== run.reason) && (
        <p>{value.reason ?? trans.__('The reason is unknown.')}</p>
      )}
      {value.reason === run.reason && hasNoMore(value) && (
        <p>{trans.__('No further information is available.')}</p>
      )}
      <dl className="jp-HyperPod-facts">
        <Place told={value} trans={trans} />
        {value.expected_start !== null && (
          <div>
            <dt>{trans.__('Expected start')}</dt>
            <dd>{momentText(value.expected_start)}</dd>
          </div>
        )}
        <Holders told={value} trans={trans} />
        <WouldStart told={value} trans={trans} />
      </dl>
      <button type="button" className="jp-HyperPod-link" onClick={retry}>
        {trans.__('Refresh')}
      </button>
    </>
  );
}

/** Whether there is nothing but a reason. */
function hasNoMore(told: IWaitReason): boolean {
  const {
    expected_start: expectedStart,
    holders,
    position,
    reason,
    tried
  } = told;
  return (
    reason !== null &&
    position === null &&
    expectedStart === null &&
    holders.length === 0 &&
    tried === 0
  );
}

interface IToldProps {
  readonly told: IWaitReason;
  readonly trans: TranslationBundle;
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

function WouldStart({ told, trans }: IToldProps): JSX.Element | null {
  const { tried, would_start_now: wouldStartNow } = told;
  if (tried === 0) {
    return null;
  }
  return (
    <div>
      <dt>{trans.__('Alternatives that could start now')}</dt>
      <dd>
        {wouldStartNow.length === 0 ? (
          trans._n(
            'none (%1 alternative tried)',
            'none (%1 alternatives tried)',
            tried
          )
        ) : (
          <ul>
            {wouldStartNow.map(sentence => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        )}
      </dd>
    </div>
  );
}
