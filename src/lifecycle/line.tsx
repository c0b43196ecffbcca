import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { WatchingWidget } from '../components/watchingWidget';
import { LifecycleModel } from './model';
import { ILifecycle, ILifecycleStep } from './types';
import { headline, overOf, stepStateText, stepText } from './words';

/**
 * A line at the panel's top on the script that makes this space ready: only while it works, and where it failed.
 */
export class LifecycleLine extends WatchingWidget<LifecycleModel> {
  constructor(
    model: LifecycleModel,
    openLog: () => void,
    trans: TranslationBundle
  ) {
    super(model);
    this.addClass('jp-HyperPod-Lifecycle');
    this._openLog = openLog;
    this._trans = trans;
  }

  protected override render(): JSX.Element | null {
    const { value } = this.watched;
    return value === null ? null : (
      <Lifecycle
        value={value}
        openLog={this._openLog}
        dismiss={() => this.watched.dismiss()}
        trans={this._trans}
      />
    );
  }

  private readonly _openLog: () => void;
  private readonly _trans: TranslationBundle;
}

function Lifecycle(props: {
  value: ILifecycle;
  openLog: () => void;
  dismiss: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { dismiss, openLog, trans, value } = props;
  const isRunning = value.state === 'running';
  const failed = value.steps.filter(({ state }) => state === 'failed');
  return (
    <section
      className="jp-HyperPod-Lifecycle-body"
      data-state={value.state}
      aria-label={trans.__('Space setup')}
    >
      <p role={isRunning ? 'status' : 'alert'}>{headline(value, trans)}</p>
      {isRunning && (
        <progress
          value={overOf(value)}
          max={value.steps.length}
          aria-label={trans.__('Space setup')}
        />
      )}
      {failed.map(step => (
        <p key={step.name}>
          <strong>{stepText(step.name, trans)}</strong>: {step.message}
        </p>
      ))}
      {value.problem !== null && <p>{value.problem.message}</p>}
      {value.steps.length > 0 && <Steps steps={value.steps} trans={trans} />}
      {!isRunning && (
        <Buttons openLog={openLog} dismiss={dismiss} trans={trans} />
      )}
    </section>
  );
}

function Buttons(props: {
  openLog: () => void;
  dismiss: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { dismiss, openLog, trans } = props;
  return (
    <div className="jp-HyperPod-Lifecycle-buttons">
      <button type="button" className="jp-HyperPod-button" onClick={openLog}>
        {trans.__('Open log')}
      </button>
      <button type="button" className="jp-HyperPod-button" onClick={dismiss}>
        {trans.__('Dismiss')}
      </button>
    </div>
  );
}

function Steps(props: {
  steps: readonly ILifecycleStep[];
  trans: TranslationBundle;
}): JSX.Element {
  const { steps, trans } = props;
  return (
    <details>
      <summary>{trans.__('Steps')}</summary>
      <ol className="jp-HyperPod-list">
        {steps.map(({ message, name, state }) => (
          <li key={name}>
            <span>{stepText(name, trans)}</span>
            <StateChip
              state={state}
              text={stepStateText(state, trans)}
              trans={trans}
            />
            {message !== '' && state !== 'failed' && (
              <span className="jp-HyperPod-item-detail">{message}</span>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}
