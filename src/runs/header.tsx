import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import {
  ActionKind,
  actionCaption,
  actionLabel,
  fittingActions
} from '../actions/kinds';
import { ErrorMessage } from '../components/errorMessage';
import { Attempts } from './attempts';
import { Children } from './children';
import { FirstError, RunFacts } from './facts';
import { RunPageModel } from './pageModel';
import { SignalWidget } from '../components/signalWidget';
import type { ICellPlace } from '../logs/place';
import { StateChip } from '../components/stateChip';
import { IRun } from './types';
import { UsedByRun } from './usedByRun';
import { WaysIn } from './waysIn';
import { WhyItWaits } from './whyItWaits';

/**
 * What the buttons of a run page do.
 */
export interface IRunActions {
  act(run: IRun, action: ActionKind): void;
  /** What can be done on a cluster. */
  readonly able: (cluster: string) => Promise<readonly ActionKind[]>;
  /** Null where nothing is there that could run it again. */
  clone: ((run: IRun) => void) | null;
  copyCommand(run: IRun): void;
  /** Copy a command that opens a shell on a run's node. */
  copyShell(command: string): void;
  /** Whether ports of a cluster's runs can be reached. */
  readonly hasPorts: (cluster: string) => Promise<boolean>;
  /** Show a port of a run's node in another tab of the browser. */
  openPort(run: IRun, nodeRank: number, port: number): void;
  /** Show another run's page. */
  openRun: (runId: string) => void;
  /** Show a line of a cell that ran. */
  openPlace(runId: string, place: ICellPlace): void;
}

/**
 * The head of a run page: what the run is, how it is, what can be done.
 */
export class RunHeader extends SignalWidget {
  constructor(
    model: RunPageModel,
    actions: IRunActions,
    trans: TranslationBundle
  ) {
    super(model.changed);
    this.addClass('jp-HyperPod-RunHeader');
    this._model = model;
    this._actions = actions;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return (
      <HeaderContent
        model={this._model}
        actions={this._actions}
        trans={this._trans}
      />
    );
  }

  private readonly _model: RunPageModel;
  private readonly _actions: IRunActions;
  private readonly _trans: TranslationBundle;
}

interface IProps {
  model: RunPageModel;
  actions: IRunActions;
  trans: TranslationBundle;
}

function HeaderContent({ model, actions, trans }: IProps): JSX.Element {
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
    return <RemovedRun run={run} trans={trans} />;
  }
  return (
    <>
      <div className="jp-HyperPod-RunHeader-title">
        <h1>{run.name}</h1>
        <span role="status" aria-live="polite">
          <StateChip state={run.state} reason={run.reason} trans={trans} />
        </span>
        <Buttons run={run} actions={actions} trans={trans} />
      </div>
      {run.reason && (
        <p className="jp-HyperPod-RunHeader-reason">{run.reason}</p>
      )}
      <WhyItWaits run={run} trans={trans} load={model.loadWhy} />
      <RunWaysIn run={run} model={model} actions={actions} trans={trans} />
      <FirstError run={run} trans={trans} show={model.showRank} />
      <RunFacts run={run} trans={trans} />
      <UsedByRun run={run} trans={trans} load={model.loadUsage} />
      <Attempts run={run} trans={trans} />
      <Children
        run={run}
        trans={trans}
        load={model.loadChildren}
        open={actions.openRun}
      />
      {error && <ErrorMessage error={error} trans={trans} />}
    </>
  );
}

function RemovedRun(props: {
  run: IRun;
  trans: TranslationBundle;
}): JSX.Element {
  const { run, trans } = props;
  return (
    <>
      <div className="jp-HyperPod-RunHeader-title">
        <h1>{run.name}</h1>
      </div>
      <p className="jp-HyperPod-RunHeader-reason" role="status">
        {trans.__('This run was removed.')}
      </p>
      <RunFacts run={run} trans={trans} isRemoved />
    </>
  );
}

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
  return (
    <div className="jp-HyperPod-RunHeader-buttons">
      {fitting.map(action => (
        <button
          key={action}
          type="button"
          className={`jp-HyperPod-button${action === 'cancel' ? ' jp-mod-warn' : ''}`}
          title={actionCaption(action, trans)}
          disabled={run.reason_code === 'cancelling'}
          onClick={() => actions.act(run, action)}
        >
          {actionLabel(action, trans)}
        </button>
      ))}
      {clone && (
        <button
          type="button"
          className="jp-HyperPod-button"
          title={trans.__('Submit this run again, with or without changes')}
          onClick={() => clone(run)}
        >
          {trans.__('Run again…')}
        </button>
      )}
      <button
        type="button"
        className="jp-HyperPod-button"
        title={trans.__('Copy the command that shows this log in a terminal')}
        onClick={() => actions.copyCommand(run)}
      >
        {trans.__('Copy command')}
      </button>
    </div>
  );
}

/** The ways into a run of the user's own, where its cluster has any. */
function RunWaysIn(props: {
  run: IRun;
  model: RunPageModel;
  actions: IRunActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, model, run, trans } = props;
  const isOffered = useAnswer(actions.hasPorts, run.cluster, false);
  return (
    <WaysIn
      run={run}
      trans={trans}
      isOffered={isOffered && run.own}
      load={model.loadAccess}
      openPort={(nodeRank, port) => actions.openPort(run, nodeRank, port)}
      copy={command => actions.copyShell(command)}
    />
  );
}

/** The least that can be done on any cluster. */
const LEAST: readonly ActionKind[] = ['cancel'];

/** What can be done on the run's cluster; it can be cancelled there in any case. */
function useAble(actions: IRunActions, run: IRun): readonly ActionKind[] {
  return useAnswer(actions.able, run.cluster, LEAST);
}

/** What is said of a cluster, once it is. */
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
