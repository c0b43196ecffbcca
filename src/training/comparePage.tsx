import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { WatchingPage } from '../components/watchingWidget';
import { Curves } from '../runs/curves';
import { IComparison } from './client';
import { CompareModel } from './compareModel';
import { chartOf, courseOf, namesOf, numberText } from './curveData';
import { CurveControls, useCurveView } from './runCurves';

/**
 * Several runs side by side: their curves over each other, and what differs in settings, code and numbers.
 */
export class ComparePage extends WatchingPage<CompareModel> {
  constructor(
    model: CompareModel,
    openRun: (runId: string) => void,
    trans: TranslationBundle
  ) {
    super(model, trans.__('Compare runs'));
    this.addClass('jp-HyperPod-ComparePage');
    this._openRun = openRun;
    this._trans = trans;
  }

  get runIds(): readonly string[] {
    return this.watched.runIds;
  }

  protected override render(): JSX.Element {
    const { comparison, error } = this.watched;
    const trans = this._trans;
    return (
      <>
        <div className="jp-HyperPod-PageHead">
          <h1>{trans.__('Compare %1 runs', this.watched.runIds.length)}</h1>
        </div>
        {error && (
          <ErrorMessage
            error={error}
            trans={trans}
            retry={() => this.watched.retry()}
          />
        )}
        {!comparison && !error && (
          <p className="jp-HyperPod-Message" role="status">
            {trans.__('Loading…')}
          </p>
        )}
        {comparison && (
          <>
            <Overlay
              model={this.watched}
              comparison={comparison}
              trans={trans}
            />
            <Numbers
              comparison={comparison}
              openRun={this._openRun}
              trans={trans}
            />
            <Settings comparison={comparison} trans={trans} />
            <Code comparison={comparison} trans={trans} />
          </>
        )}
      </>
    );
  }

  private readonly _openRun: (runId: string) => void;
  private readonly _trans: TranslationBundle;
}

const KINDS: Readonly<Record<string, string>> = {
  '+': 'added',
  '-': 'removed',
  '@': 'gap'
};

/** The curves of all runs, one chart for each name that some of them print: of the first rank of each. */
function Overlay(props: {
  model: CompareModel;
  comparison: IComparison;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { comparison, model, trans } = props;
  const { series } = model;
  const all = React.useMemo(() => [...series.values()].flat(), [series]);
  const [view, setView] = useCurveView(all);
  const charts = React.useMemo(
    () =>
      namesOf(all).map(name =>
        chartOf(
          name,
          comparison.runs.flatMap((runId, at) => {
            const own = (series.get(runId) ?? []).filter(
              one => one.name === name
            );
            const first = Math.min(...own.map(one => one.rank));
            return own.length === 0
              ? []
              : [
                  courseOf(
                    own.filter(one => one.rank === first),
                    view.x,
                    labelOf(comparison, at)
                  )
                ];
          }),
          view,
          { bandOf: null, trans }
        )
      ),
    [all, comparison, series, view, trans]
  );
  if (charts.length === 0) {
    return null;
  }
  return (
    <section className="jp-HyperPod-Resources">
      <div className="jp-HyperPod-Resources-head">
        <h2>{trans.__('Curves')}</h2>
        <CurveControls view={view} setView={setView} trans={trans} />
      </div>
      <Curves charts={charts} trans={trans} />
    </section>
  );
}

/** A run's name, with the end of its id where another one has the same name. */
function labelOf({ names, runs }: IComparison, at: number): string {
  const isAlone = names.filter(name => name === names[at]).length === 1;
  return isAlone ? names[at] : `${names[at]} · ${runs[at].slice(-6)}`;
}

function Numbers(props: {
  comparison: IComparison;
  openRun: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { comparison, openRun, trans } = props;
  const names = namesOf(
    Object.keys(comparison.metrics).map(name => ({ name }))
  );
  return (
    <Section title={trans.__('Numbers')}>
      {names.length === 0 ? (
        <p className="jp-HyperPod-Message">
          {trans.__('These runs print no numbers.')}
        </p>
      ) : (
        <table className="jp-HyperPod-Table">
          <thead>
            <tr>
              <th scope="col">{trans.__('Newest (lowest – highest)')}</th>
              {comparison.runs.map((runId, at) => (
                <th key={runId} scope="col" title={runId}>
                  <button
                    type="button"
                    className="jp-HyperPod-link"
                    onClick={() => openRun(runId)}
                  >
                    {labelOf(comparison, at)}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map(name => {
              const { found, highest, last, lowest } = comparison.metrics[name];
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {comparison.runs.map((runId, at) => (
                    <td key={runId}>
                      {!found[at]
                        ? '–'
                        : lowest[at] === null
                          ? numberText(last[at])
                          : `${numberText(last[at])} (${numberText(lowest[at])} – ${numberText(highest[at])})`}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Settings(props: {
  comparison: IComparison;
  trans: TranslationBundle;
}): JSX.Element {
  const { comparison, trans } = props;
  return (
    <Section title={trans.__('Settings that differ')}>
      {comparison.spec.length === 0 ? (
        <p className="jp-HyperPod-Message">
          {trans.__('The settings are the same.')}
        </p>
      ) : (
        <table className="jp-HyperPod-Table">
          <thead>
            <Heads first={trans.__('Setting')} comparison={comparison} />
          </thead>
          <tbody>
            {comparison.spec.map(({ path, values }) => (
              <tr key={path}>
                <th scope="row">{path}</th>
                {values.map((value, at) => (
                  <td key={comparison.runs[at]}>
                    <code>{value === null ? '–' : JSON.stringify(value)}</code>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

function Heads(props: { first: string; comparison: IComparison }): JSX.Element {
  const { comparison, first } = props;
  return (
    <tr>
      <th scope="col">{first}</th>
      {comparison.runs.map((runId, at) => (
        <th key={runId} scope="col" title={runId}>
          {labelOf(comparison, at)}
        </th>
      ))}
    </tr>
  );
}

function Code(props: {
  comparison: IComparison;
  trans: TranslationBundle;
}): JSX.Element {
  const { comparison, trans } = props;
  const { code, runs } = comparison;
  return (
    <Section title={trans.__('Code that differs')}>
      {code.length === 0 && (
        <p className="jp-HyperPod-Message">
          {trans.__('The code is the same.')}
        </p>
      )}
      {code.map(({ diff, path }) => (
        <details key={path}>
          <summary>{path}</summary>
          {diff.length === 0 ? (
            <p className="jp-HyperPod-Message">
              {trans.__('No lines to compare.')}
            </p>
          ) : (
            <pre
              className="jp-HyperPod-Diff"
              tabIndex={0}
              aria-label={trans.__(
                'Changes of %1 from %2 to %3',
                path,
                labelOf(comparison, 0),
                labelOf(comparison, runs.length - 1)
              )}
            >
              {diff.map((line, at) => (
                <span key={at} data-kind={KINDS[line[0]] ?? 'same'}>
                  {line}
                  {'\n'}
                </span>
              ))}
            </pre>
          )}
        </details>
      ))}
    </Section>
  );
}

function Section(props: {
  title: string;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <section className="jp-HyperPod-Compare">
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}
