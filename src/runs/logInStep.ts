import type { LogViewModel } from '../logs/viewModel';
import { RunPageModel } from './pageModel';
import { isEnded } from './types';

/**
 * Keeps a log in step with its run, which may be given more ranks, end, be removed, or be requeued and go on.
 *
 * It lives as long as the two models.
 */
export class LogInStep {
  constructor(model: RunPageModel, log: LogViewModel) {
    this._model = model;
    this._log = log;
    model.changed.connect(this._onRun, this);
    log.feed.stateChanged.connect(this._onLog, this);
    this._onRun();
  }

  private _onRun(): void {
    const { removed, run } = this._model;
    if (!run) {
      return;
    }
    this._log.removed = removed;
    if (removed) {
      return;
    }
    const ended = isEnded(run.state);
    // Ranks come with an attempt, and who is silent is known at the end for good.
    const phase = `${run.attempts.length} ${ended}`;
    if (this._phase !== '' && phase !== this._phase) {
      void this._log.loadStreams();
    }
    this._phase = phase;
    this._reopen(ended ? '' : `${run.attempts.length} ${run.state}`);
  }

  /** A run that goes on after its log's end was requeued. Once for each stage: the two need not know of an end at the same moment. */
  private _reopen(stage: string): void {
    if (stage === '') {
      this._reopenedAt = '';
    } else if (this._log.feed.over && stage !== this._reopenedAt) {
      this._reopenedAt = stage;
      this._log.feed.reopen();
    }
  }

  /** A log may know of its run's end first, or that the run is gone. */
  private _onLog(): void {
    const { removed, run } = this._model;
    const { ended, error } = this._log.feed;
    const isGone = error?.isMissing && !removed;
    if (isGone || (ended && run && !isEnded(run.state))) {
      void this._model.load();
    }
  }

  private readonly _model: RunPageModel;
  private readonly _log: LogViewModel;
  private _phase = '';
  private _reopenedAt = '';
}
