import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { StateChip } from '../components/stateChip';
import { WatchingPage } from '../components/watchingWidget';
import { durationText, momentText } from '../components/words';
import { CheckList } from './checkList';
import { DoctorModel } from './model';
import { TinyJob } from './tinyJob';
import { ICheck, IExamination } from './types';
import { countOf, levelText, LEVELS, spokenText } from './words';

/**
 * The way of a run to a node and back, examined step by step. Nothing is read while it is hidden.
 */
export class DoctorPage extends WatchingPage<DoctorModel> {
  constructor(options: DoctorPage.IOptions) {
    const { model, trans } = options;
    super(model, trans.__('HyperPod Doctor'));
    this.addClass('jp-HyperPod-Doctor');
    this._options = options;
  }

  /** Examine everything, unless something was examined before. */
  examineFirst(): Promise<void> {
    return this.watched.beginFirst({ cluster: null, job: false });
  }

  protected override render(): JSX.Element {
    return <Doctor {...this._options} />;
  }

  private readonly _options: DoctorPage.IOptions;
}

export namespace DoctorPage {
  export interface IOptions {
    model: DoctorModel;
    /** Put a text onto the clipboard. */
    copy: (text: string) => void;
    /** Copy the report for an admin. */
    copyReport: () => void;
    /** Save the report for an admin as a file. */
    saveReport: () => void;
    trans: TranslationBundle;
  }
}

function Doctor(props: DoctorPage.IOptions): JSX.Element {
  const { copy, model, trans } = props;
  const { error, isBusy, value } = model;
  const [onlyBad, setOnlyBad] = React.useState(false);
  const checks = value?.checks ?? [];
  const shown = onlyBad ? checks.filter(one => one.level !== 'ok') : checks;
  return (
    <>
      <h1>{trans.__('HyperPod Doctor')}</h1>
      <p>
        {trans.__(
          'Checks each part that a run needs: this installation, Studio and AWS, the network, file systems, the storage partition and each cluster. The checks change nothing.'
        )}
      </p>
      <Buttons {...props} />
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.refresh()}
        />
      )}
      <p className="jp-HyperPod-Doctor-spoken" role="status">
        {spokenText(value, trans)}
      </p>
      {value !== null && value.state !== 'none' && (
        <Summary found={value} trans={trans} />
      )}
      {checks.length > 0 && (
        <label className="jp-HyperPod-Doctor-only">
          <input
            type="checkbox"
            checked={onlyBad}
            onChange={event => setOnlyBad(event.target.checked)}
          />
          {trans.__('Problems only')}
        </label>
      )}
      <CheckList checks={shown} copy={copy} trans={trans} />
      <TinyJob
        clusters={clustersOf(checks)}
        isBusy={isBusy}
        run={cluster => void model.begin({ cluster, job: true })}
        trans={trans}
      />
    </>
  );
}

/** The clusters that answered: a job may run there. */
function clustersOf(checks: readonly ICheck[]): string[] {
  return checks.flatMap(({ about, key, level }) =>
    key === 'cluster' && about !== null && level !== 'fail' ? [about] : []
  );
}

function Buttons(props: DoctorPage.IOptions): JSX.Element {
  const { copyReport, model, saveReport, trans } = props;
  const { isBusy, value } = model;
  const hasReport = value !== null && value.checks.length > 0;
  return (
    <div className="jp-HyperPod-Doctor-buttons">
      {isBusy ? (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={() => void model.cancel()}
        >
          {trans.__('Stop')}
        </button>
      ) : (
        <button
          type="button"
          className="jp-HyperPod-button"
          onClick={() => void model.begin({ cluster: null, job: false })}
        >
          {hasReport ? trans.__('Run again') : trans.__('Run checks')}
        </button>
      )}
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={!hasReport}
        onClick={copyReport}
      >
        {trans.__('Copy report')}
      </button>
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={!hasReport}
        onClick={saveReport}
      >
        {trans.__('Download report')}
      </button>
    </div>
  );
}

/** How far it is, and how many checks are how; a screen reader hears less often of it. */
function Summary(props: {
  found: IExamination;
  trans: TranslationBundle;
}): JSX.Element {
  const { found, trans } = props;
  const {
    begun_at: begunAt,
    checks,
    cluster,
    ended_at: endedAt,
    problem,
    state,
    step
  } = found;
  return (
    <div className="jp-HyperPod-Doctor-summary">
      {LEVELS.map(level => ({ level, count: countOf(checks, level) }))
        .filter(({ count }) => count > 0)
        .map(({ count, level }) => (
          <StateChip
            key={level}
            state={level}
            text={`${count} ${levelText(level, trans)}`}
            trans={trans}
          />
        ))}
      {cluster !== null && <span>{trans.__('Only %1', cluster)}</span>}
      {state === 'running' ? (
        <span>
          {step === null
            ? trans.__('Checking…')
            : trans.__('Checking: %1…', step)}
        </span>
      ) : (
        <span>
          {trans.__(
            '%1, took %2',
            momentText(begunAt),
            durationText(begunAt, endedAt, trans)
          )}
        </span>
      )}
      {problem && <ErrorMessage error={problem} trans={trans} />}
    </div>
  );
}
