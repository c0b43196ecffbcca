import { ApiError } from '../api';
import { Polled } from '../components/polled';
import { CostModel } from '../cost/costModel';
import { ILogClient, ILogAttempt } from '../logs';
import { IRunClient, IRunResources } from './client';
import { ITrainingClient } from '../training/client';
import { SeriesModel } from '../training/seriesModel';
import { RunPageModel } from './pageModel';
import { isEnded } from './types';

/** As often as the launchers of a long run sample, or less. */
const POLL_MS = 5_000;

/**
 * What changes while a run goes on.
 */
export interface ICourse {
  readonly resources: IRunResources;
  /** When each rank wrote last. */
  readonly streams: readonly ILogAttempt[];
}

/**
 * A run's ranks and curves, read while they are seen and the run goes on. Only the run's own records are read: no scheduler is asked.
 */
export class OverviewModel extends Polled<ICourse> {
  constructor(
    readonly page: RunPageModel,
    private readonly _client: Pick<IRunClient, 'cost' | 'resources'>,
    private readonly _logs: Pick<ILogClient, 'streams'>,
    training: Pick<ITrainingClient, 'series'>
  ) {
    super({ name: 'run-overview', interval: POLL_MS, linger: 0 });
    this.series = new SeriesModel(training, page.runId);
    this.cost = new CostModel(_client, page.runId);
    page.changed.connect(this._onPage, this);
  }

  /** What it costs. */
  readonly cost: CostModel;

  /** What the ranks print. */
  readonly series: SeriesModel;

  /** The node whose curves are shown; null for the first ones. */
  get node(): number | null {
    return this._node;
  }

  set node(node: number | null) {
    this._node = node;
    this._stage = '';
    this.turnTo({ forget: false });
    if (this._isShown) {
      this._goOn();
    }
  }

  override dispose(): void {
    this.page.changed.disconnect(this._onPage, this);
    this.series.dispose();
    this.cost.dispose();
    super.dispose();
  }

  override start(): void {
    this._isShown = true;
    this._goOn();
  }

  override stop(): void {
    this._isShown = false;
    this.series.stop();
    this.cost.stop();
    super.stop();
  }

  protected override async read(): Promise<ICourse> {
    const { runId } = this.page;
    const [resources, streams] = await Promise.all([
      this._client.resources(runId, this._node),
      this._logs.streams(runId),
      this.page.loadOverview()
    ]);
    return { resources, streams };
  }

  protected override onAnswer(answer: ICourse | ApiError): void {
    const isRunning = this.page.run?.state === 'running';
    if (!isRunning && !(answer instanceof ApiError)) {
      // Nothing changes until the run does.
      this._stage = this._nextStage();
      super.stop();
    }
  }

  private _onPage(): void {
    if (this._isShown) {
      this._goOn();
    }
  }

  private _goOn(): void {
    const { run } = this.page;
    if (run !== null && run.started_at !== null) {
      this.series.start(!isEnded(run.state));
      this.cost.follow(run);
    }
    if (this._stage !== this._nextStage() && this.page.run !== null) {
      super.start();
    }
  }

  private _nextStage(): string {
    const { run } = this.page;
    return run ? `${run.state} ${run.attempts.length}` : '';
  }

  private _node: number | null = null;
  private _isShown = false;
  /** The run's stage of which all was read. */
  private _stage = '';
}
