import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { UseSignal } from '@jupyterlab/ui-components';

import { WatchingWidget } from '../components/watchingWidget';
import { CostSection } from '../cost/section';
import { ILogClient } from '../logs';
import { MlflowSection } from '../mlflow/section';
import { ITrainingClient } from '../training/client';
import { RunCurves } from '../training/runCurves';
import { Attempts } from './attempts';
import { ChartScope, resourceCharts } from './chartData';
import { Children } from './children';
import { IRunClient, IRunResources } from './client';
import { Curves } from './curves';
import { Details } from './details';
import { IRunActions, OwnRunShells } from './header';
import { OverviewModel } from './overviewModel';
import { RunPageModel } from './pageModel';
import { RankStrip } from './rankStrip';
import { TimeLine } from './timeLine';
import { IRun } from './types';
import { UsedByRun } from './usedByRun';
import { WhyItWaits } from './whyItWaits';

/**
 * A run at a glance: why it waits, its time line, ranks, curves, and what it used.
 */
export class OverviewTab extends WatchingWidget<OverviewModel> {
  constructor(options: OverviewTab.IOptions) {
    const { client, logs, model, training } = options;
    super(new OverviewModel(model, client, logs, training));
    this.addClass('jp-HyperPod-OverviewTab');
    this.node.tabIndex = 0;
    this._options = options;
    model.changed.connect(this._onPage, this);
  }

  override dispose(): void {
    this._options.model.changed.disconnect(this._onPage, this);
    super.dispose();
  }

  protected override render(): JSX.Element | null {
    const { run } = this._options.model;
    // What it shows may ask the cluster: not before it is seen.
    return run && this._options.model.isOverviewShown ? (
      <Overview {...this._options} run={run} course={this.watched} />
    ) : null;
  }

  private _onPage(): void {
    this.update();
  }

  private readonly _options: OverviewTab.IOptions;
}

export namespace OverviewTab {
  export interface IOptions {
    readonly model: RunPageModel;
    readonly client: Pick<IRunClient, 'cost' | 'resources' | 'mlflow'>;
    readonly logs: Pick<ILogClient, 'page' | 'streams'>;
    readonly training: Pick<ITrainingClient, 'series'>;
    readonly actions: IRunActions;
    readonly trans: TranslationBundle;
  }
}

function Overview(
  props: OverviewTab.IOptions & { run: IRun; course: OverviewModel }
): JSX.Element {
  const { actions, client, course, logs, model, run, trans } = props;
  const runId = run.run_id;
  const loadLine = React.useCallback(
    (rank: number) => lastLine(logs, runId, rank),
    [logs, runId]
  );
  // Read again when it has come to another state.
  const loadMlflow = React.useCallback(
    () => client.mlflow(runId),
    [client, runId, run.state]
  );
  const isOwn = run.own;
  const { openUsage } = actions;
  return (
    <>
      {run.state === 'waiting' && (
        <WhyItWaits
          run={run}
          trans={trans}
          load={model.loadWhy}
          switchTo={isOwn ? change => actions.switchTo(run, change) : null}
          openRun={actions.openRun}
        />
      )}
      <TimeLine run={run} overview={model.overview} trans={trans} />
      <RankStrip
        ranks={model.overview?.ranks ?? []}
        streams={course.value?.streams ?? []}
        resources={course.value?.resources ?? null}
        trans={trans}
        showRank={model.showRank}
        loadLine={loadLine}
      />
      <UseSignal signal={course.series.changed}>
        {() => <RunCurves series={course.series.series} trans={trans} />}
      </UseSignal>
      {course.value && (
        <Resources
          found={course.value.resources}
          course={course}
          run={run}
          trans={trans}
        />
      )}
      <MlflowSection
        load={loadMlflow}
        open={() => actions.openMlflow(run)}
        trans={trans}
      />
      <UseSignal signal={course.cost.changed}>
        {() => (
          <CostSection
            model={course.cost}
            openUsage={openUsage && (() => openUsage(run.cluster))}
            trans={trans}
          />
        )}
      </UseSignal>
      <UsedByRun run={run} trans={trans} load={model.loadUsage} />
      <Attempts run={run} trans={trans} />
      <Children
        run={run}
        trans={trans}
        load={model.loadChildren}
        open={actions.openRun}
      />
      <OwnRunShells run={run} model={model} actions={actions} trans={trans} />
      <Details run={run} trans={trans} />
    </>
  );
}

/** The last line of a rank's log; null where it is empty. */
async function lastLine(
  logs: Pick<ILogClient, 'page'>,
  runId: string,
  rank: number
): Promise<string | null> {
  const direction = 'backward';
  const page = await logs.page({ runId, ranks: [rank], direction, limit: 1 });
  const blocks = page.frames[page.frames.length - 1]?.blocks;
  const lines = blocks?.[blocks.length - 1]?.lines ?? null;
  return lines?.split('\n').filter(Boolean).pop() ?? null;
}

const NO_NODES: readonly string[] = [];

function Resources(props: {
  found: IRunResources;
  course: OverviewModel;
  run: IRun;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { course, found, run, trans } = props;
  const [scope, setScope] = React.useState<ChartScope>('ranks');
  const attempt = run.attempts.find(one => one.number === found.attempt);
  const nodes = attempt?.nodes ?? NO_NODES;
  const hasRanks = found.series.some(one => one.rank !== null);
  const shown = hasRanks ? scope : 'nodes';
  // Drawn again only for other values.
  const charts = React.useMemo(
    () => resourceCharts(found, shown, nodes, trans),
    [found, shown, nodes, trans]
  );
  if (charts.length === 0) {
    return null;
  }
  return (
    <section className="jp-HyperPod-Resources">
      <div className="jp-HyperPod-Resources-head">
        <h2>{trans.__('Resources')}</h2>
        {hasRanks && (
          <span role="group" aria-label={trans.__('Curves of')}>
            <ScopeButton scope="ranks" shown={shown} choose={setScope}>
              {trans.__('By rank')}
            </ScopeButton>
            <ScopeButton scope="nodes" shown={shown} choose={setScope}>
              {trans.__('By node')}
            </ScopeButton>
          </span>
        )}
        {found.nodes.length > 1 && (
          <label className="jp-HyperPod-field">
            {trans.__('Node')}
            <select
              className="jp-HyperPod-select"
              value={course.node ?? ''}
              onChange={event =>
                (course.node =
                  event.target.value === '' ? null : Number(event.target.value))
              }
            >
              <option value="">
                {found.nodes.length > 8
                  ? trans.__('first 8 of %1', found.nodes.length)
                  : trans.__('all')}
              </option>
              {found.nodes.map(rank => (
                <option key={rank} value={rank}>
                  {nodes[rank] ?? rank}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Curves charts={charts} trans={trans} />
    </section>
  );
}

function ScopeButton(props: {
  scope: ChartScope;
  shown: ChartScope;
  choose: (scope: ChartScope) => void;
  children: React.ReactNode;
}): JSX.Element {
  const { children, choose, scope, shown } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-button"
      aria-pressed={scope === shown}
      onClick={() => choose(scope)}
    >
      {children}
    </button>
  );
}
