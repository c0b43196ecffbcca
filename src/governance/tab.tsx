import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Age } from '../clusters/age';
import { Bar } from '../clusters/bar';
import type { IClusterClient } from '../clusters/client';
import { QuotaBars } from '../clusters/quotas';
import { ClusterView, useRefresh } from '../clusters/view';
import { ErrorMessage } from '../components/errorMessage';
import { Hint } from '../components/hint';
import { Notes } from '../components/notes';
import { StateChip } from '../components/stateChip';
import { Watched } from '../components/watched';
import {
  IAllocation,
  IClusterPolicy,
  IGovernance,
  IPriorityClass,
  ITeamQuota
} from './types';
import {
  allocationText,
  fairShareText,
  governanceStateText,
  idleSharingText,
  preemptionText,
  sharingText
} from './words';

/** Code of a cluster that can't have it: nobody's fault, and nothing to try again. */
const NO_GOVERNANCE = 'no_governance';

/**
 * The task governance of a cluster on EKS: what each team has, and how work is ordered. It is read while this is shown.
 */
export function GovernanceTab(props: {
  cluster: string;
  client: IClusterClient;
  isShown: () => boolean;
  view: ClusterView;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans, view } = props;
  const watched = useGovernance(props);
  useRefresh(view, () => watched.refresh());
  const { error, value } = watched;
  return (
    <>
      {error?.code === NO_GOVERNANCE ? (
        <>
          <Notes notes={[error.message]} />
          {error.hint && <Hint hint={error.hint} trans={trans} />}
        </>
      ) : (
        error && (
          <ErrorMessage
            error={error}
            trans={trans}
            retry={() => watched.refresh()}
          />
        )
      )}
      {value === null && !error && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      )}
      {value && <Told governance={value} trans={trans} />}
    </>
  );
}

/** The cluster's task governance, read as long as the tab is there. */
function useGovernance(props: {
  cluster: string;
  client: IClusterClient;
  isShown: () => boolean;
}): Watched<IGovernance> {
  const { client, cluster, isShown } = props;
  const [, setTold] = React.useState(0);
  const [watched] = React.useState(
    () =>
      new Watched<IGovernance>(
        refresh => client.governance(cluster, refresh),
        undefined,
        isShown
      )
  );
  React.useEffect(() => {
    watched.changed.connect(() => setTold(count => count + 1));
    watched.start();
    return () => watched.dispose();
  }, [watched]);
  return watched;
}

function Told(props: {
  governance: IGovernance;
  trans: TranslationBundle;
}): JSX.Element {
  const { governance, trans } = props;
  const { notes, policies, quotas } = governance;
  return (
    <>
      <Age aged={governance} trans={trans} />
      <Notes notes={notes} />
      {quotas.length > 0 && <Quotas quotas={quotas} trans={trans} />}
      {policies.map(policy => (
        <Policy key={policy.policy_id} policy={policy} trans={trans} />
      ))}
    </>
  );
}

function Quotas(props: {
  quotas: readonly ITeamQuota[];
  trans: TranslationBundle;
}): JSX.Element {
  const { quotas, trans } = props;
  const most = Math.max(...quotas.map(quota => quota.weight ?? 0), 1);
  return (
    <Table
      label={trans.__('Teams')}
      titles={[
        trans.__('Team'),
        trans.__('State'),
        trans.__('Allocated'),
        trans.__('In use'),
        trans.__('Jobs'),
        trans.__('Idle compute'),
        trans.__('Weight'),
        trans.__('Preemption')
      ]}
    >
      {quotas.map(quota => (
        <QuotaRow
          key={quota.quota_id}
          quota={quota}
          most={most}
          trans={trans}
        />
      ))}
    </Table>
  );
}

function QuotaRow(props: {
  quota: ITeamQuota;
  /** The greatest weight of all teams. */
  most: number;
  trans: TranslationBundle;
}): JSX.Element {
  const { most, quota, trans } = props;
  return (
    <tr>
      <th scope="row" title={quota.namespace}>
        {quota.team}
      </th>
      <td>
        <StateChip
          state={chipOf(quota.state)}
          text={governanceStateText(quota.state, trans)}
          reason={quota.reason}
          trans={trans}
        />
        {quota.reason && (
          <span className="jp-HyperPod-Settings-meaning">{quota.reason}</span>
        )}
      </td>
      <td>
        <Allocations allocated={quota.allocated} trans={trans} />
      </td>
      <td>
        {quota.used === null ? (
          trans.__('unknown')
        ) : (
          <QuotaBars quotas={quota.used} trans={trans} />
        )}
      </td>
      <td>{jobsText(quota, trans)}</td>
      <td>
        {sharingText(quota.sharing, trans)}
        <Borrows quota={quota} trans={trans} />
      </td>
      <td>
        <Weight weight={quota.weight} most={most} />
      </td>
      <td>{preemptionText(quota.preemption, trans)}</td>
    </tr>
  );
}

function Policy(props: {
  policy: IClusterPolicy;
  trans: TranslationBundle;
}): JSX.Element {
  const { policy, trans } = props;
  const facts = [
    fairShareText(policy.fair_share, trans),
    idleSharingText(policy.idle_sharing, trans)
  ].filter(words => words !== '');
  return (
    <>
      <h2>
        {policy.name}{' '}
        <StateChip
          state={chipOf(policy.state)}
          text={governanceStateText(policy.state, trans)}
          reason={policy.reason}
          trans={trans}
        />
      </h2>
      {policy.state === 'failed' && policy.reason && (
        <p className="jp-HyperPod-Table-note" role="note">
          {policy.reason}
        </p>
      )}
      <ul className="jp-HyperPod-Governance-rules">
        {facts.map(words => (
          <li key={words}>{words}</li>
        ))}
      </ul>
      {policy.priorities.length > 0 && (
        <Priorities priorities={policy.priorities} trans={trans} />
      )}
    </>
  );
}

function Priorities(props: {
  priorities: readonly IPriorityClass[];
  trans: TranslationBundle;
}): JSX.Element {
  const { priorities, trans } = props;
  const most = Math.max(...priorities.map(one => one.weight), 1);
  return (
    <Table
      label={trans.__('Priority classes')}
      titles={[
        trans.__('Priority class'),
        trans.__('Weight'),
        trans.__('Label')
      ]}
    >
      {priorities.map(one => (
        <tr key={one.name}>
          <th scope="row">{one.name}</th>
          <td>
            <Weight weight={one.weight} most={most} />
          </td>
          <td>
            <code>{`kueue.x-k8s.io/priority-class: ${one.label}`}</code>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Table(props: {
  label: string;
  titles: readonly string[];
  children: React.ReactNode;
}): JSX.Element {
  const { children, label, titles } = props;
  return (
    <section
      className="jp-HyperPod-Table jp-HyperPod-Governance"
      aria-label={label}
    >
      <div className="jp-HyperPod-Table-head">
        <h2>{label}</h2>
      </div>
      <div
        className="jp-HyperPod-Table-scroll"
        role="group"
        aria-label={label}
        tabIndex={0}
      >
        <table>
          <thead>
            <tr>
              {titles.map(title => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </section>
  );
}

/** A weight, with a bar beside the number. */
function Weight(props: {
  weight: number | null;
  most: number;
}): JSX.Element | null {
  const { most, weight } = props;
  return weight === null ? null : (
    <span className="jp-HyperPod-Governance-weight">
      <Bar parts={[{ use: 'used', amount: weight }]} total={most} />
      {weight}
    </span>
  );
}

function Allocations(props: {
  allocated: readonly IAllocation[];
  trans: TranslationBundle;
}): JSX.Element {
  const { allocated, trans } = props;
  return (
    <ul className="jp-HyperPod-Quotas">
      {allocated.map((one, at) => (
        <li key={at}>{allocationText(one, trans)}</li>
      ))}
    </ul>
  );
}

function Borrows(props: {
  quota: ITeamQuota;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { quota, trans } = props;
  if (quota.borrow_most.length > 0) {
    return (
      <>
        <br />
        {trans.__('borrow limit:')}
        <Allocations allocated={quota.borrow_most} trans={trans} />
      </>
    );
  }
  return quota.borrow_percent === null ? null : (
    <>
      <br />
      {trans.__('borrows up to %1 %', quota.borrow_percent)}
    </>
  );
}

function jobsText(quota: ITeamQuota, trans: TranslationBundle): string {
  const { running, waiting } = quota;
  return running === null || waiting === null
    ? ''
    : trans.__('%1 running, %2 waiting', running, waiting);
}

/** The chip's state: those of clusters have their shapes. */
function chipOf(state: string): string {
  return state === 'active' ? 'in-service' : state;
}
