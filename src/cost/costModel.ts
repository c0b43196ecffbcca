import { ApiError } from '../api';
import { Polled } from '../components/polled';
import type { IRunClient } from '../runs/client';
import { IRun, isEnded } from '../runs/types';
import type { IRunCost } from './client';

const POLL_MS = 30_000;
/** The scheduler's accounting has the end of a job this late at the most. */
const LATE_MS = 60_000;

/**
 * What a run costs: read at most every 30 s while it is seen and goes on, and once it has come to another state.
 */
export class CostModel extends Polled<IRunCost> {
  constructor(
    private readonly _client: Pick<IRunClient, 'cost'>,
    readonly runId: string
  ) {
    super({ name: 'run-cost', interval: POLL_MS, linger: 0 });
  }

  /** The run is seen, and is so. */
  follow(run: IRun): void {
    const stage = `${run.state} ${run.attempts.length}`;
    const isNew = stage !== this._stage;
    this._stage = stage;
    this._run = run;
    if (isNew) {
      this._readAt = 0;
    }
    if (isNew && this.isStarted) {
      this.turnTo({ forget: false });
    } else if (isNew || this.value === null || !this._isOver()) {
      this.start();
    }
  }

  protected override async read(): Promise<IRunCost> {
    // A page may be shown and hidden often.
    if (this.value !== null && Date.now() - this._readAt < POLL_MS / 2) {
      return this.value;
    }
    const found = await this._client.cost(this.runId);
    this._readAt = Date.now();
    return found;
  }

  protected override onAnswer(answer: IRunCost | ApiError): void {
    if (this._isOver() && !(answer instanceof ApiError)) {
      this.stop();
    }
  }

  /** Whether nothing can change any more. */
  private _isOver(): boolean {
    const { created_at: created, ended_at: ended, state } = this._run ?? {};
    return (
      state !== undefined &&
      isEnded(state) &&
      Date.now() - Date.parse(ended ?? created ?? '') > LATE_MS
    );
  }

  private _run: IRun | null = null;
  private _stage = '';
  private _readAt = 0;
}
