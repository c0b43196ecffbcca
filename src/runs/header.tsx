import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import {
  ActionKind,
  actionCaption,
  actionLabel,
  fittingActions
} from '../actions/kinds';
import { ErrorMessage } from '../components/errorMessage';
import { SignalWidget } from '../components/signalWidget';
import { StateChip } from '../components/stateChip';
import { useTick } from '../components/useTick';
import type { ICellPlace } from '../logs/place';
import { AlarmList } from '../training/alarmList';
import type { NumbersModel } from '../training/numbersModel';
import { leftText, stepText } from '../training/words';
import { IRunClient, IRunOverview } from './client';
import { FailureCard } from './failureCard';
import { canDelete } from './listMenu';
import { MenuButton } from './menuButton';
import { RunPageModel } from './pageModel';
import { IRun, isEnded } from './types';
import { RunShells } from './shells';
import { IStartNow } from './whyItWaits';
import {
  clockText,
  fullSizeText,
  secondsBetween,
  sentenceText,
  sizeText
} from './words';

/**
 * What the buttons of a run page do.
 */
export interface IRunActions {
  act(run: IRun, action: ActionKind): void;
  /** What can be done on a cluster. */
  readonly able: (cluster: string) => Promise<readonly ActionKind[]>;
  /** Null where nothing is there that could run it again. */
  clone: ((run: IRun) => void) | null;
  /** Run the notebook that it came from, as it is now; null as above. */
  runNow: ((run: IRun) => void) | null;
  /** Delete a run that has ended, once the user has agreed. */
  delete(run: IRun): void;
  copyCommand(run: IRun): void;
  /** Copy a command that opens a shell on a run's node. */
  copyShell(command: string): void;
  /** Whether a cluster has shells on the nodes of its runs. */
  readonly hasShells: (cluster: string) => Promise<boolean>;
  /** Show a run's page in MLflow in another tab of the browser. */
  openMlflow(run: IRun): void;
  /** Show the page of usage; null where it is switched off. */
  openUsage: ((cluster: string) => void) | null;
  /** Show another run's page. */
  readonly openRun: (runId: string) => void;
  /** Show a line of a cell that ran. */
  openPlace(runId: string, place: ICellPlace): void;
  /** Show the notebook that a run came from, at the cells that ran. */
  openSource(run: IRun): void;
  /** Save the executed notebook as a file, and open it. */
  openExecuted(run: IRun, rank?: number): void;
  /** Start a waiting run in another way. */
  switchTo(run: IRun, change: IStartNow): Promise<void>;
}

/**
 * The head of a run page: one line on what the run is and how it is, and under it what is wrong.
 */
export class RunHeader extends SignalWidget {
  constructor(private readonly _options: RunHeader.IOptions) {
    super(_options.model.changed);
    this.addClass('jp-HyperPod-RunHeader');
    _options.numbers.changed.connect(this._onNumbers, this);
  }

  override dispose(): void {
    this._options.numbers.changed.disconnect(this._onNumbers, this);
    super.dispose();
  }

  private _onNumbers(): void {
    this.update();
  }

  protected override render(): JSX.Element {
    return <HeaderContent {...this._options} />;
  }
}

export namespace RunHeader {
  export interface IOptions {
    readonly model: RunPageModel;
    readonly actions: IRunActions;
    readonly client: Pick<IRunClient, 'cells' | 'codeFile'>;
    readonly numbers: Pick<NumbersModel, 'changed' | 'of'>;
    readonly trans: TranslationBundle;
  }
}

function HeaderContent(props: RunHeader.IOptions): JSX.Element {
  const { model, trans } = props;
  const { error, run } = model;
  if (!run) {
    return error ? (
      <ErrorMessage
        error={error}
        trans={trans}
        retry={() => void model.load()}
      />
    ) : (
      <p role="status">{trans.__('Loading the run…')}</p>
    );
  }
  if (model.removed) {
    return (
      <>
        <div className="jp-HyperPod-RunHeader-title">
          <h1>{run.name}</h1>
        </div>
        <p className="jp-HyperPod-RunHeader-reason" role="status">
          {trans.__('This run was removed.')}
        </p>
      </>
    );
  }
  return (
    <>
      <Title {...props} run={run} />
      <AlarmList
        alarms={props.numbers.of(run.run_id)?.summary.alarms ?? []}
        trans={trans}
      />
      <Banner {...props} run={run} />
      {error && <ErrorMessage error={error} trans={trans} />}
    </>
  );
}

function Title(props: RunHeader.IOptions & { run: IRun }): JSX.Element {
  const { actions, model, run, trans } = props;
  const { overview } = model;
  const queue = overview?.queue ?? run.queue;
  return (
    <div className="jp-HyperPod-RunHeader-title">
      <h1 title={run.run_id}>{run.name}</h1>
      <span role="status" aria-live="polite">
        <StateChip state={run.state} reason={run.reason} trans={trans} />
      </span>
      <Elapsed run={run} overview={overview} trans={trans} />
      <Step {...props} run={run} />
      <span className="jp-HyperPod-RunHeader-facts">
        <span title={trans.__('Cluster and queue')}>
          {queue ? `${run.cluster} / ${queue}` : run.cluster}
        </span>
        <span title={fullSizeText(run, trans)}>{sizeText(run, trans)}</span>
        {!run.own && <span title={trans.__('User')}>{run.user}</span>}
        {run.notebook !== null && (
          <button
            type="button"
            className="jp-HyperPod-link"
            title={trans.__('Open %1 at the cells that ran', run.notebook)}
            onClick={() => actions.openSource(run)}
          >
            {run.notebook.slice(run.notebook.lastIndexOf('/') + 1)}
          </button>
        )}
      </span>
      <Buttons run={run} actions={actions} trans={trans} />
    </div>
  );
}

/** How long a run has run, against its limit. */
function Elapsed(props: {
  run: IRun;
  overview: IRunOverview | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { overview, run, trans } = props;
  const isGoing = run.state === 'running' && run.ended_at === null;
  useTick(isGoing);
  // While a run waits for its next attempt its duration is unknown.
  if (run.started_at === null || !(isGoing || isEnded(run.state))) {
    return null;
  }
  const seconds = secondsBetween(run.started_at, run.ended_at);
  const limit = overview?.time_limit ?? null;
  const text = clockText(seconds);
  if (limit === null || !isGoing) {
    return (
      <span className="jp-HyperPod-Elapsed" title={trans.__('Duration')}>
        {text}
      </span>
    );
  }
  return (
    <span
      className="jp-HyperPod-Elapsed"
      title={trans.__('Time, and its limit')}
    >
      <progress
        value={Math.min(seconds, limit)}
        max={limit}
        aria-label={trans.__('Time, and its limit')}
        data-late={seconds > 0.9 * limit}
      />
      {`${text} / ${clockText(limit)}`}
    </span>
  );
}

/** How far the training is, and the time left. */
function Step(props: RunHeader.IOptions & { run: IRun }): JSX.Element | null {
  const { numbers, run, trans } = props;
  const summary = numbers.of(run.run_id)?.summary;
  if (!summary?.progress || isEnded(run.state)) {
    return null;
  }
  const { step, total } = summary.progress;
  return (
    <span className="jp-HyperPod-Elapsed" title={trans.__('Training progress')}>
      {total !== null && (
        <progress
          value={step}
          max={total}
          aria-label={trans.__('Training progress')}
        />
      )}
      {[stepText(summary, trans), leftText(summary, trans)]
        .filter(Boolean)
        .join(', ')}
    </span>
  );
}

/** Why it failed, or what else is to be said, once. */
function Banner(props: RunHeader.IOptions & { run: IRun }): JSX.Element | null {
  const { actions, client, model, run, trans } = props;
  if (run.state === 'failed') {
    return (
      <FailureCard
        run={run}
        client={client}
        trans={trans}
        isCompact={!model.isOverviewShown}
        showRank={model.showRank}
        openPlace={place => actions.openPlace(run.run_id, place)}
      />
    );
  }
  // The overview of a run that waits says why, at length.
  const isSaid = run.state === 'waiting' && model.isOverviewShown;
  return run.reason && !isSaid ? (
    <p className="jp-HyperPod-RunHeader-reason">{sentenceText(run.reason)}</p>
  ) : null;
}

/** Actions with a button of their own; the others are in the menu. */
const SHOWN: readonly ActionKind[] = ['cancel', 'hold', 'release'];

function Buttons(props: {
  run: IRun;
  actions: IRunActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, run, trans } = props;
  const { clone } = actions;
  const able = useAble(actions, run);
  const isHeld = run.reason_code === 'held';
  const fitting = run.own ? fittingActions(able, run.state, isHeld) : [];
  const isCancelling = run.reason_code === 'cancelling';
  const inMenu = isCancelling
    ? []
    : fitting.filter(action => !SHOWN.includes(action));
  return (
    <div className="jp-HyperPod-RunHeader-buttons">
      {fitting
        .filter(action => SHOWN.includes(action))
        .map(action => (
          <button
            key={action}
            type="button"
            className={`jp-HyperPod-button${action === 'cancel' ? ' jp-mod-warn' : ''}`}
            title={actionCaption(action, trans)}
            disabled={isCancelling}
            onClick={() => actions.act(run, action)}
          >
            {actionLabel(action, trans)}
          </button>
        ))}
      {clone && <RunAgain run={run} actions={actions} trans={trans} />}
      <MenuButton
        label={null}
        title={trans.__('More actions')}
        items={[
          ...inMenu.map(action => ({
            label: actionLabel(action, trans),
            caption: actionCaption(action, trans),
            act: () => actions.act(run, action)
          })),
          {
            label: trans.__('Copy command'),
            caption: trans.__(
              'Copy the command that shows this log in a terminal'
            ),
            act: () => actions.copyCommand(run)
          },
          ...(canDelete(run)
            ? [
                {
                  label: trans.__('Delete…'),
                  caption: trans.__('Remove the code, logs and results'),
                  act: () => actions.delete(run)
                }
              ]
            : [])
        ]}
      />
    </div>
  );
}

/** Runs it again: with the same code, or with the notebook as it is now. */
function RunAgain(props: {
  run: IRun;
  actions: IRunActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, run, trans } = props;
  const { clone, runNow } = actions;
  const title = trans.__('Submit this run again, with or without changes');
  return run.notebook !== null && runNow ? (
    <MenuButton
      label={trans.__('Run again')}
      title={title}
      items={[
        {
          label: trans.__('Same code as this run…'),
          act: () => clone?.(run)
        },
        {
          label: trans.__('Code as it is now…'),
          act: () => runNow(run)
        }
      ]}
    />
  ) : (
    <button
      type="button"
      className="jp-HyperPod-button"
      title={title}
      onClick={() => clone?.(run)}
    >
      {trans.__('Run again…')}
    </button>
  );
}

const NO_FOLDERS: readonly string[] = [];

/** Commands for a run of the user's own. */
export function OwnRunShells(props: {
  run: IRun;
  model: RunPageModel;
  actions: IRunActions;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { actions, model, run, trans } = props;
  const isOffered = useAnswer(actions.hasShells, run.cluster, false);
  return !run.own ? null : (
    <RunShells
      run={run}
      trans={trans}
      isOffered={isOffered}
      logFolders={model.overview?.log_folders ?? NO_FOLDERS}
      load={model.loadAccess}
      copy={actions.copyShell}
    />
  );
}

/** The least that can be done on any cluster. */
const LEAST: readonly ActionKind[] = ['cancel'];

/** What can be done on the run's cluster; it can be cancelled there in any case. */
function useAble(actions: IRunActions, run: IRun): readonly ActionKind[] {
  return useAnswer(actions.able, run.cluster, LEAST);
}

/** The text of a cluster's state, once known. */
function useAnswer<T>(
  ask: (cluster: string) => Promise<T>,
  cluster: string,
  before: T
): T {
  const [answer, setAnswer] = React.useState(before);
  React.useEffect(() => {
    let wanted = true;
    void ask(cluster).then(found => {
      if (wanted) {
        setAnswer(found);
      }
    });
    return () => {
      wanted = false;
    };
  }, [ask, cluster]);
  return answer;
}
