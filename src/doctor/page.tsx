import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { WatchingPage } from '../components/watchingWidget';
import { durationText, momentText } from '../components/words';
import { CheckList } from './checkList';
import { DoctorModel } from './model';
import { Path } from './path';
import { TinyJob } from './tinyJob';
import { ICheck, IExamination, IStage, Stage } from './types';
import { spokenText, summaryText } from './words';

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

  /** Examine everything, unless something was examined before. With a cluster: examine it now. */
  examine(cluster: string | null): Promise<void> {
    const asked = { cluster, job: false };
    return cluster === null
      ? this.watched.beginFirst(asked)
      : this.watched.begin(asked);
  }

  protected override render(): JSX.Element {
    return <Doctor {...this._options} />;
  }

  private readonly _options: DoctorPage.IOptions;
}

export namespace DoctorPage {
  export interface IOptions {
    model: DoctorModel;
    /** The names of the configured clusters. */
    clusters: () => Promise<readonly string[]>;
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
  const [chosen, setChosen] = React.useState<Stage | null>(null);
  const job = React.useRef<HTMLDivElement>(null);
  const checks = value?.checks ?? [];
  const shown =
    chosen === null ? checks : checks.filter(({ stage }) => stage === chosen);
  const choose = ({ checks, stage }: IStage) => {
    if (checks === 0) {
      setChosen(null);
      // Where no check looked, as at the nodes of a cluster that was not reached, the test job does.
      job.current?.scrollIntoView({ block: 'nearest' });
      job.current?.querySelector('select')?.focus();
    } else {
      setChosen(stage === chosen ? null : stage);
    }
  };
  return (
    <>
      <Head {...props} />
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
        <>
          <Path
            stages={value.stages}
            busy={value.step?.stage ?? null}
            chosen={chosen}
            choose={choose}
            trans={trans}
          />
          <Summary found={value} trans={trans} />
        </>
      )}
      {checks.length > 0 && (
        <div className="jp-HyperPod-Doctor-buttons">
          <label className="jp-HyperPod-Doctor-only">
            <input
              type="checkbox"
              checked={onlyBad}
              onChange={event => setOnlyBad(event.target.checked)}
            />
            {trans.__('Problems only')}
          </label>
          {chosen !== null && (
            <button
              type="button"
              className="jp-HyperPod-button"
              onClick={() => setChosen(null)}
            >
              {trans.__('Show all stages')}
            </button>
          )}
        </div>
      )}
      <CheckList
        key={chosen}
        checks={shown}
        copy={copy}
        onlyBad={onlyBad}
        isOpen={chosen !== null}
        trans={trans}
      />
      <div ref={job}>
        <TinyJob
          clusters={clustersOf(checks)}
          isBusy={isBusy}
          run={cluster => void model.begin({ cluster, job: true })}
          trans={trans}
        />
      </div>
    </>
  );
}

function Head(props: DoctorPage.IOptions): JSX.Element {
  const { model, trans } = props;
  const hasChecks = (model.value?.checks.length ?? 0) > 0;
  return (
    <>
      <div className="jp-HyperPod-Doctor-head">
        <h1>{trans.__('HyperPod Doctor')}</h1>
        <Buttons {...props} />
      </div>
      {!hasChecks && (
        <p>
          {trans.__(
            'Checks each stage that a run passes: JupyterLab, your AWS role, the network, the file system, the scheduler and the nodes. The checks change nothing.'
          )}
        </p>
      )}
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
  const { clusters, copyReport, model, saveReport, trans } = props;
  const { isBusy, value } = model;
  const hasReport = value !== null && value.checks.length > 0;
  const names = useLoaded(clusters).value ?? [];
  const [chosen, setChosen] = React.useState<string | null>(null);
  // At first, what was examined last.
  const cluster = chosen ?? value?.cluster ?? '';
  return (
    <div className="jp-HyperPod-Doctor-buttons">
      {names.length > 1 && (
        <select
          className="jp-HyperPod-select"
          aria-label={trans.__('Clusters to check')}
          value={names.includes(cluster) ? cluster : ''}
          disabled={isBusy}
          onChange={event => {
            const name = event.target.value;
            setChosen(name);
            void model.begin({ cluster: name || null, job: false });
          }}
        >
          <option value="">{trans.__('All clusters')}</option>
          {names.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
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
          className="jp-HyperPod-button jp-mod-accept"
          onClick={() =>
            void model.begin({ cluster: cluster || null, job: false })
          }
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
      {checks.length > 0 && <strong>{summaryText(checks, trans)}</strong>}
      {cluster !== null && <span>{trans.__('Only %1', cluster)}</span>}
      {state === 'running' ? (
        <span>
          {step === null
            ? trans.__('Checking…')
            : trans.__('Checking %1…', step.name)}
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
