import { IRunningSessions } from '@jupyterlab/running';
import { ISignal, Signal } from '@lumino/signaling';

import { stateText } from '../components/words';
import { hyperPodIcon } from '../icons';
import { failed, whyText } from '../runs/actions';
import { IRun } from '../runs/types';
import { IHyperPod } from '../tokens';

/**
 * Runs that wait or run, as Lab's Running panel wants them: to open is to see the log, to shut down is to cancel.
 */
export class RunningRuns implements IRunningSessions.IManager {
  constructor(hyperPod: IHyperPod) {
    const { runs, trans } = hyperPod;
    this._hyperPod = hyperPod;
    this.name = trans.__('HyperPod runs');
    this.shutdownLabel = trans.__('Cancel run');
    this.shutdownAllLabel = trans.__('Cancel all');
    this.shutdownAllConfirmationText = trans.__(
      'Cancel all waiting and running HyperPod runs? This can’t be undone.'
    );
    runs.changed.connect(() => this._runningChanged.emit(), this);
  }

  readonly name: string;
  readonly shutdownLabel: string;
  readonly shutdownAllLabel: string;
  readonly shutdownAllConfirmationText: string;

  get runningChanged(): ISignal<this, void> {
    return this._runningChanged;
  }

  running(): IRunningSessions.IRunningItem[] {
    return this._hyperPod.runs.active.map(run => this._item(run));
  }

  shutdownAll(): void {
    const { runs } = this._hyperPod;
    runs.active.forEach(run => this._cancel(run.run_id));
  }

  refreshRunning(): void {
    void this._hyperPod.runs.refresh().catch(() => undefined);
  }

  private _item(run: IRun): IRunningSessions.IRunningItem {
    const { trans } = this._hyperPod;
    return {
      icon: () => hyperPodIcon,
      label: () => run.name,
      labelTitle: () => run.run_id,
      detail: () => stateText(run.state, trans),
      open: () => void this._hyperPod.openRun(run.run_id),
      shutdown: () => this._cancel(run.run_id)
    };
  }

  private _cancel(runId: string): void {
    const { runs, trans } = this._hyperPod;
    const name = runs.find(runId)?.name ?? runId;
    runs.act(runId, 'cancel').catch((reason: unknown) => {
      const why = whyText(reason, trans);
      failed(trans.__('%1 could not be cancelled. %2', name, why));
    });
  }

  private readonly _hyperPod: IHyperPod;
  private readonly _runningChanged = new Signal<this, void>(this);
}
