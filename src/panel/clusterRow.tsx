import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { orchestratorText } from '../clusters/awsWords';
import { Bar } from '../clusters/bar';
import { gpuName } from '../clusters/devices';
import { clusterStateText } from '../clusters/states';
import { ICluster } from '../clusters/types';
import { IMenuEntry, openMenu } from '../components/menu';
import { StateIcon } from '../components/stateIcon';
import type { IRows } from '../components/useRows';
import { agoText } from '../components/words';
import type { IPanelActions } from './actions';
import { canConnect, reachLine } from './reach';

/** Numbers that are older than this are grey; a scheduler is asked less often while nothing happens. */
const OLD_MS = 120_000;

/**
 * A cluster in one or two short lines: its GPUs and jobs, or what is missing.
 */
export function ClusterRow(props: {
  cluster: ICluster;
  /** Whether AWS' description of it may be on its way. */
  isLoading: boolean;
  row: ReturnType<IRows['rowProps']>;
  entries: () => readonly (IMenuEntry | null)[];
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, cluster, entries, isLoading, row, trans } = props;
  const { configured, name, state } = cluster;
  const { newRun } = actions;
  const isWaited =
    isLoading &&
    !configured &&
    cluster.hyperpod?.described_at === null &&
    !cluster.hyperpod.reason;
  const icon = !configured && state === 'in-service' ? 'not-connected' : state;
  const stateText =
    icon === 'not-connected'
      ? trans.__('not connected')
      : clusterStateText(state, trans);
  const shownName = configured ? name : (cluster.hyperpod?.name ?? name);
  return (
    <li
      className={`jp-HyperPod-Row${isOld(cluster) ? ' jp-mod-stale' : ''}`}
      data-state={state}
      onContextMenu={event => {
        event.preventDefault();
        event.stopPropagation();
        openMenu(entries(), { x: event.clientX, y: event.clientY });
      }}
    >
      <button
        type="button"
        className="jp-HyperPod-Row-main"
        title={hintOf(cluster, trans)}
        {...row}
      >
        <StateIcon state={icon} text={stateText} trans={trans} />
        <span className="jp-HyperPod-Row-name">{shownName}</span>
        <span className="jp-HyperPod-Row-end">{jobsText(cluster, trans)}</span>
        <SecondLine cluster={cluster} isWaited={isWaited} trans={trans} />
      </button>
      {configured && newRun && (
        <span className="jp-HyperPod-Row-actions">
          <button
            type="button"
            className="jp-HyperPod-IconButton"
            tabIndex={-1}
            title={trans.__('New run here')}
            aria-label={trans.__('New run here')}
            onClick={() => newRun(name)}
          >
            <addIcon.react tag="span" width="16px" height="16px" />
          </button>
        </span>
      )}
      {!isWaited && canConnect(cluster) && (
        <button
          type="button"
          className="jp-HyperPod-button jp-HyperPod-Row-connect"
          title={trans.__('Add %1 to the configuration', shownName)}
          onClick={() => actions.connect(cluster)}
        >
          {trans.__('Connect')}
        </button>
      )}
    </li>
  );
}

/** Its jobs; if unknown, its kind. */
function jobsText(cluster: ICluster, trans: TranslationBundle): string {
  const { configured, orchestrator, running, waiting } = cluster;
  if (!configured) {
    return '';
  }
  const parts = [
    running ? trans.__('%1 running', running) : '',
    waiting ? trans.__('%1 waiting', waiting) : ''
  ].filter(Boolean);
  return parts.length === 0 && orchestrator === 'local'
    ? trans.__('this machine')
    : parts.join(' · ');
}

function SecondLine(props: {
  cluster: ICluster;
  isWaited: boolean;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { cluster, isWaited, trans } = props;
  const { gpus, state } = cluster;
  if (!cluster.configured) {
    return (
      <Detail
        text={isWaited ? trans.__('Loading…') : awsLine(cluster, trans)}
      />
    );
  }
  if (state !== 'up' && cluster.reason) {
    return <Detail text={cluster.reason} />;
  }
  if (gpus.length > 0) {
    const [{ total, unavailable, used }] = gpus;
    return (
      <span className="jp-HyperPod-Row-detail">
        {used !== null && (
          <Bar
            parts={[
              { use: 'used', amount: used },
              { use: 'off', amount: unavailable }
            ]}
            total={total}
          />
        )}
        <span className="jp-HyperPod-Row-words">
          {gpus.map(one => gpuText(one, trans)).join(', ')}
        </span>
      </span>
    );
  }
  const text = plainText(cluster, trans);
  return text ? <Detail text={text} /> : null;
}

function Detail({ text }: { text: string }): JSX.Element {
  return (
    <span className="jp-HyperPod-Row-detail">
      <span className="jp-HyperPod-Row-words">{text}</span>
    </span>
  );
}

function gpuText(
  { free, total, type }: ICluster['gpus'][number],
  trans: TranslationBundle
): string {
  const name = type === null ? trans.__('GPUs') : gpuName(type);
  return free === null
    ? trans.__('%1 %2', total, name)
    : trans.__('%1 of %2 %3 free', free, total, name);
}

/** A cluster without GPUs; of this machine there is nothing to say. */
function plainText(cluster: ICluster, trans: TranslationBundle): string {
  const { nodes, orchestrator } = cluster;
  if (orchestrator === 'local') {
    return '';
  }
  const parts = [orchestratorText(orchestrator, trans)];
  if (nodes !== null) {
    parts.push(trans._n('%1 node', '%1 nodes', nodes));
  }
  return parts.join(' · ');
}

/** What AWS has there, and what is missing to submit to it. */
function awsLine(cluster: ICluster, trans: TranslationBundle): string {
  const { hyperpod, reason, state } = cluster;
  if (!hyperpod) {
    return reason ?? clusterStateText(state, trans);
  }
  const why = hyperpod.reason ?? reason;
  if (state !== 'in-service') {
    const words = clusterStateText(state, trans);
    return why ? `${words}: ${why}` : words;
  }
  return [hardwareText(cluster, trans), why ?? reachLine(cluster, trans)]
    .filter(Boolean)
    .join(' · ');
}

/** The most of its instances, else their number. */
function hardwareText(
  { hyperpod, orchestrator }: ICluster,
  trans: TranslationBundle
): string {
  const [most] = [...(hyperpod?.groups ?? [])].sort(
    (one, other) => weight(other) - weight(one)
  );
  if (most?.instance_type) {
    const type = most.instance_type.replace(/^ml\./, '');
    return trans.__('%1 × %2', most.current, type);
  }
  return hyperpod?.nodes
    ? trans._n('%1 node', '%1 nodes', hyperpod.nodes)
    : orchestratorText(orchestrator, trans);
}

/** Controllers and login nodes are no hardware to run on. */
function weight({
  current,
  slurm_role: role
}: {
  readonly current: number;
  readonly slurm_role: string | null;
}): number {
  return role === null || role === 'Compute' ? current : -1;
}

function isOld({ as_of: asOf, configured, state }: ICluster): boolean {
  return (
    configured &&
    asOf !== null &&
    (state !== 'up' || Date.now() - Date.parse(asOf) > OLD_MS)
  );
}

/** All the rest, under the pointer. */
function hintOf(cluster: ICluster, trans: TranslationBundle): string {
  const { as_of: asOf, configured, hyperpod, notes, reason } = cluster;
  const lines = [reason ?? '', ...notes];
  if (hyperpod) {
    const state = clusterStateText(hyperpod.state, trans);
    lines.push(trans.__('HyperPod: %1', state));
    if (!configured && hyperpod.reach) {
      lines.push(hyperpod.reach.sentence);
    }
    if (configured && hyperpod.name !== cluster.name) {
      lines.push(trans.__('%1 in AWS', hyperpod.name));
    }
  }
  if (asOf) {
    lines.push(trans.__('Updated %1', agoText(asOf, trans)));
  }
  return lines.filter(Boolean).join('\n');
}
