import { Dialog, showDialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import {
  ActionKind,
  actionCaption,
  actionLabel,
  ChangeField,
  doneText,
  failedText,
  IChange,
  knownActions
} from '../actions/kinds';
import { askForChange, mayRequeue } from '../actions/questions';
import { ApiError } from '../api';
import { hintText } from '../components/hint';
import { IResults, Results } from '../components/results';
import { useAnew } from '../components/useAnew';
import { IClusterClient } from './client';
import { jobColumns } from './jobColumns';
import { ServerTable } from './serverTable';
import {
  ICluster,
  IJobResult,
  ITableQuery,
  TableRow,
  valueText
} from './types';
import { useSelection } from './useSelection';
import type { ClusterView } from './view';

/** Maximum number of names in a confirmation. */
const NAMED = 5;

interface IProps {
  cluster: string;
  client: IClusterClient;
  view: ClusterView;
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}

/** What became of the last action. */
interface IOutcome {
  readonly action: ActionKind;
  readonly results: readonly IJobResult[];
  readonly error: ApiError | null;
}

/**
 * Everybody's jobs, of which some can be chosen to do something to them.
 */
export function JobsTable(props: IProps): JSX.Element {
  const { client, cluster, openRun, trans, view } = props;
  const { chosen, forget, selection } = useSelection(jobOf);
  const there = view.row;
  const able = actionsOf(there);
  const { act, busy, close, outcome } = useActing(
    props,
    there?.changes ?? [],
    chosen,
    forget
  );
  const load = useAnew(
    () => (query: ITableQuery) => client.table(cluster, 'jobs', query),
    outcome
  );
  return (
    <ServerTable
      load={load}
      label={trans.__('Jobs of all users')}
      view={view}
      columns={jobColumns(trans, openRun)}
      empty={trans.__('No jobs are waiting or running.')}
      selection={able.length > 0 ? selection : undefined}
      trans={trans}
    >
      {able.length > 0 && (
        <JobActions
          able={able}
          count={chosen.size}
          busy={busy}
          act={act}
          trans={trans}
        />
      )}
      <Results
        results={outcome && resultsOf(outcome, trans)}
        close={close}
        trans={trans}
      />
    </ServerTable>
  );
}

/** The scheduler’s id of a row’s job. */
function jobOf(row: TableRow): string {
  return valueText(row.scheduler_id);
}

/** Does something to the chosen jobs, and keeps what came of it; those that it was done to are chosen no more. */
function useActing(
  props: IProps,
  changes: readonly ChangeField[],
  chosen: ReadonlyMap<string, TableRow>,
  forget: (keys: readonly string[]) => void
): {
  act: (action: ActionKind) => void;
  busy: boolean;
  close: () => void;
  outcome: IOutcome | null;
} {
  const { client, cluster } = props;
  const [outcome, setOutcome] = React.useState<IOutcome | null>(null);
  const [busy, setBusy] = React.useState(false);
  const act = async (action: ActionKind): Promise<void> => {
    const change = await question(action, changes, chosen, props);
    if (change === null) {
      return;
    }
    setBusy(true);
    const jobs = [...chosen.keys()];
    try {
      const results = await client.act(cluster, {
        action,
        jobs,
        ...(change && { change })
      });
      setOutcome({ action, results, error: null });
      forget(results.filter(one => !one.error).map(one => one.scheduler_id));
    } catch (reason) {
      setOutcome({ action, results: [], error: ApiError.of(reason) });
    } finally {
      setBusy(false);
    }
  };
  return {
    act: action => void act(action),
    busy,
    close: () => setOutcome(null),
    outcome
  };
}

/** What can be done there; nothing as long as that is not known. */
function actionsOf(cluster: ICluster | null): readonly ActionKind[] {
  return cluster ? knownActions(cluster.actions) : [];
}

function JobActions(props: {
  able: readonly ActionKind[];
  count: number;
  busy: boolean;
  act: (action: ActionKind) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { able, act, busy, count, trans } = props;
  // Not `disabled`: the keyboard's focus would be lost once nothing is chosen any more.
  const isOff = busy || count === 0;
  return (
    <div
      className="jp-HyperPod-JobActions"
      role="group"
      aria-label={trans.__('Actions for the selected jobs')}
    >
      <span className="jp-HyperPod-count" role="status">
        {trans._n('%1 job selected', '%1 jobs selected', count)}
      </span>
      {able.map(action => (
        <button
          key={action}
          type="button"
          className={`jp-HyperPod-button${action === 'cancel' ? ' jp-mod-warn' : ''}`}
          title={actionCaption(action, trans)}
          aria-disabled={isOff}
          onClick={() => isOff || act(action)}
        >
          {actionLabel(action, trans)}
        </button>
      ))}
    </div>
  );
}

/** One line for each job. */
function resultsOf(outcome: IOutcome, trans: TranslationBundle): IResults {
  const lines = outcome.results.map(result => ({
    key: result.scheduler_id,
    failed: result.error !== null,
    text: resultText(outcome.action, result, trans)
  }));
  return { lines, error: outcome.error };
}

function resultText(
  action: ActionKind,
  { error, scheduler_id: schedulerId }: IJobResult,
  trans: TranslationBundle
): string {
  if (error === null) {
    return doneText(action, schedulerId, trans);
  }
  const hint = error.hint && hintText(error.hint, trans);
  const why = hint ? `${error.message} (${hint})` : error.message;
  return failedText(action, schedulerId, why, trans);
}

/** Ask what has to be asked before an action. Null: not to be done; undefined: done without a change. */
async function question(
  action: ActionKind,
  changes: readonly ChangeField[],
  chosen: ReadonlyMap<string, TableRow>,
  { client, cluster, trans }: IProps
): Promise<IChange | null | undefined> {
  const names = namesOf(chosen, trans);
  switch (action) {
    case 'cancel':
      return (await mayCancel(names, chosen.size, trans)) ? undefined : null;
    case 'requeue':
      return (await mayRequeue(names, trans)) ? undefined : null;
    case 'change':
      return askForChange(names, changes, client.queues(cluster), trans);
    default:
      return undefined;
  }
}

async function mayCancel(
  names: string,
  count: number,
  trans: TranslationBundle
): Promise<boolean> {
  const answer = await showDialog({
    title: trans._n('Cancel %1 job?', 'Cancel %1 jobs?', count),
    body: trans.__('%1. This can’t be undone.', names),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Let it run') }),
      Dialog.warnButton({ label: trans.__('Cancel') })
    ]
  });
  return answer.button.accept;
}

/** The first jobs with their names and users, and how many more. */
function namesOf(
  chosen: ReadonlyMap<string, TableRow>,
  trans: TranslationBundle
): string {
  const rows = [...chosen].slice(0, NAMED);
  const names = rows.map(([id, row]) =>
    trans.__('%1 (%2, of %3)', id, valueText(row.name), valueText(row.user))
  );
  const more = chosen.size - rows.length;
  if (more > 0) {
    names.push(trans._n('%1 more', '%1 more', more));
  }
  return names.join(', ');
}
