import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../api';
import { ISelection } from '../clusters/serverTable';
import { TableRow, valueText } from '../clusters/types';
import { useSelection } from '../clusters/useSelection';
import { ILoaded, useLoaded } from '../components/useLoaded';
import { actInBatches, IProgress } from './batches';
import { INodeClient } from './client';
import { confirmPlan } from './planDialog';
import { INodeAbility, INodePlan, INodeResult, NodeAction } from './types';

/**
 * What became of the last action.
 */
export interface INodeOutcome {
  readonly action: NodeAction;
  readonly results: readonly INodeResult[];
  /** Why it was not even tried. */
  readonly error: ApiError | null;
}

/**
 * Rows of nodes that can be chosen, and what is done to them.
 */
export interface INodeActions {
  readonly selection: ISelection;
  /** How many are chosen. */
  readonly count: number;
  /** What can be done; nothing as long as that is not known. */
  readonly abilities: readonly INodeAbility[];
  /** Why it is not known. */
  readonly problem: Pick<ILoaded<unknown>, 'error' | 'retry'>;
  /** Do something to nodes; default: the chosen ones. */
  readonly act: (action: NodeAction, nodes?: readonly string[]) => void;
  /** The action in progress, from the request for its consequences on. */
  readonly busy: NodeAction | null;
  /** How far it is; null before the first nodes are done. */
  readonly progress: IProgress | null;
  /** Send no further nodes. */
  readonly stop: () => void;
  readonly isStopped: boolean;
  readonly outcome: INodeOutcome | null;
  readonly close: () => void;
  /** How often something was done: the table is to be read again then. */
  readonly turn: number;
}

/** Errors of clusters that have no such actions: not shown. */
const NOT_MISSED = ['no_hyperpod_cluster', 'unsupported'];

/** What its table gives. */
interface IOptions {
  client: INodeClient;
  cluster: string;
  trans: TranslationBundle;
}

/**
 * Lets the user select nodes of a table and act on them: first the consequences are shown, then the action runs, then each node has its result.
 */
export function useNodeActions(options: IOptions): INodeActions {
  const { client, cluster } = options;
  const { chosen, forget, selection } = useSelection(nameOf);
  const read = React.useCallback(
    () => client.abilities(cluster),
    [client, cluster]
  );
  const known = useLoaded(read);
  const abilities = (known.value ?? []).filter(
    ({ problem }) => problem === null || !NOT_MISSED.includes(problem.code)
  );
  const acting = useActing(options, [...chosen.keys()], forget);
  return {
    ...acting,
    selection,
    count: chosen.size,
    abilities,
    problem: known
  };
}

/** Does something to the chosen nodes, and keeps what came of it; those that it was done to are chosen no more. */
function useActing(
  { client, cluster, trans }: IOptions,
  names: readonly string[],
  forget: (names: readonly string[]) => void
): Omit<INodeActions, 'selection' | 'count' | 'abilities' | 'problem'> {
  const [busy, setBusy] = React.useState<NodeAction | null>(null);
  const [progress, setProgress] = React.useState<IProgress | null>(null);
  const [outcome, setOutcome] = React.useState<INodeOutcome | null>(null);
  const [turn, setTurn] = React.useState(0);
  const [isStopped, setStopped] = React.useState(false);
  const goesOn = React.useRef(true);
  const act = async (
    action: NodeAction,
    nodes: readonly string[]
  ): Promise<void> => {
    goesOn.current = true;
    setStopped(false);
    setOutcome(null);
    setBusy(action);
    const acting = { action, names: nodes, tell: setProgress, trans };
    try {
      const results = await askAndAct(client, cluster, {
        ...acting,
        goesOn: () => goesOn.current
      });
      if (results !== null) {
        setOutcome({ action, results, error: null });
        forget(doneNames(results));
        setTurn(turn + 1);
      }
    } catch (reason) {
      setOutcome({ action, results: [], error: ApiError.of(reason) });
    } finally {
      setBusy(null);
      setProgress(null);
    }
  };
  return {
    act: (action, nodes = names) => void act(action, nodes),
    busy,
    progress,
    stop: () => {
      goesOn.current = false;
      setStopped(true);
    },
    isStopped,
    outcome,
    close: () => setOutcome(null),
    turn
  };
}

/** The action, its label, and whether it continues. */
interface IActing {
  readonly action: NodeAction;
  readonly names: readonly string[];
  readonly reason?: string;
  readonly tell: (progress: IProgress) => void;
  readonly goesOn: () => boolean;
  readonly trans: TranslationBundle;
}

/**
 * Show the consequences for nodes, ask, and act; resuming nodes needs no confirmation. Null: the user declined.
 */
export async function askAndAct(
  client: INodeClient,
  cluster: string,
  acting: IActing
): Promise<readonly INodeResult[] | null> {
  const { action, names, trans } = acting;
  if (action === 'resume') {
    return actInBatches(client, cluster, { action, nodes: names }, acting);
  }
  const plan = await client.preview(cluster, { action, nodes: names });
  const confirmed = await confirmPlan(plan, trans, acting.reason);
  if (confirmed === null) {
    return null;
  }
  const order = { action, ...confirmed };
  const results = await actInBatches(client, cluster, order, acting);
  return [...named(results, plan), ...refused(plan)];
}

/** The results under the names by which the user knows the nodes. */
function named(
  results: readonly INodeResult[],
  plan: INodePlan
): readonly INodeResult[] {
  return results.map(result => {
    const planned = plan.nodes.find(node =>
      [node.instance, node.node, node.name].includes(result.name)
    );
    return planned
      ? { ...planned, ...result, name: planned.name, node: planned.node }
      : result;
  });
}

/** What was left out has its result too. */
function refused(plan: INodePlan): readonly INodeResult[] {
  return plan.nodes
    .filter(node => node.refusal !== null)
    .map(({ instance, name, node, refusal }) => ({
      name,
      instance,
      node,
      ok: false,
      error: refusal
    }));
}

function doneNames(results: readonly INodeResult[]): readonly string[] {
  return results.filter(one => one.error === null).map(one => one.name);
}

function nameOf(row: TableRow): string {
  return valueText(row.name);
}
