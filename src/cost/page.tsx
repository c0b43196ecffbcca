import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Chart } from '../charts/chart';
import { Bar } from '../clusters/bar';
import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { saveText } from '../components/saveText';
import { useLoaded } from '../components/useLoaded';
import { WatchingPage } from '../components/watchingWidget';
import { shortMomentText } from '../components/words';
import {
  firstMeasure,
  IUsageChart,
  Measure,
  measureLabel,
  measuresOf,
  measureText,
  sortedRows,
  usageChart
} from './chartData';
import { ICostClient, IUsageReport } from './client';
import { csvName, csvOf } from './csv';
import { IdleTable } from './idle';
import { By, UsageModel } from './usageModel';

/** Rows that are shown at first. */
const ROWS = 100;

/**
 * Who used how much of the clusters, and what it cost: bars of each day, and a table. Nothing is asked for while it is hidden.
 */
export class UsagePage extends WatchingPage<UsageModel> {
  constructor(private readonly _options: UsagePage.IOptions) {
    super(new UsageModel(_options.client), _options.trans.__('Usage and cost'));
    this.addClass('jp-HyperPod-UsagePage');
  }

  /** Show one cluster only. */
  showCluster(cluster: string): void {
    this.watched.choose({ cluster });
  }

  protected override render(): JSX.Element {
    return <Usage {...this._options} model={this.watched} />;
  }
}

export namespace UsagePage {
  export interface IOptions {
    readonly client: ICostClient;
    /** The names of the configured clusters. */
    readonly clusters: () => Promise<readonly string[]>;
    readonly trans: TranslationBundle;
  }
}

function Usage(
  props: UsagePage.IOptions & { readonly model: UsageModel }
): JSX.Element {
  const { model, trans } = props;
  const { error, isBusy, report } = model;
  const [wanted, setMeasure] = React.useState<Measure | null>(null);
  const measures = report ? measuresOf(report) : [];
  const measure =
    measures.find(one => one === wanted) ?? firstMeasure(measures);
  return (
    <>
      <div className="jp-HyperPod-PageHead">
        <h1>{trans.__('Usage and cost')}</h1>
        {report && (
          <span className="jp-HyperPod-PageHead-detail">
            {trans.__('counted up to %1', shortMomentText(report.end))}
          </span>
        )}
        <span className="jp-HyperPod-PageHead-end">
          <button
            type="button"
            className="jp-HyperPod-button"
            onClick={() => model.refresh()}
          >
            {trans.__('Refresh')}
          </button>
          <button
            type="button"
            className="jp-HyperPod-button"
            disabled={!report?.days.length}
            onClick={() =>
              report && saveText(csvName(report), csvOf(report), 'text/csv')
            }
          >
            {trans.__('Export CSV')}
          </button>
        </span>
      </div>
      <div className="jp-HyperPod-UsagePage-choices">
        <Choices {...props} />
        {measures.length > 1 && (
          <span
            className="jp-HyperPod-Segments"
            role="group"
            aria-label={trans.__('Show')}
          >
            {measures.map(one => (
              <button
                key={one}
                type="button"
                aria-pressed={one === measure}
                onClick={() => setMeasure(one)}
              >
                {measureLabel(one, trans)}
              </button>
            ))}
          </span>
        )}
      </div>
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.refresh()}
        />
      )}
      {isBusy && !error && !report && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Counting…')}
        </p>
      )}
      {report && (
        <div aria-busy={isBusy}>
          <Report report={report} measure={measure} trans={trans} />
          <IdleTable
            rows={report.idle}
            currency={report.currency}
            trans={trans}
          />
          <Bills bills={report.bills} trans={trans} />
        </div>
      )}
    </>
  );
}

/** What is counted: by which key, in which time, on which clusters. */
function Choices(
  props: UsagePage.IOptions & { readonly model: UsageModel }
): JSX.Element {
  const { model, trans } = props;
  const { by, cluster, days } = model.choice;
  const names = useLoaded(props.clusters).value ?? [];
  const clusters = new Set(cluster === null ? names : [...names, cluster]);
  return (
    <>
      <Choice
        label={trans.__('By')}
        value={by}
        options={KEYS.map(key => [key, keyLabel(key, trans)])}
        choose={value => {
          model.choose({ by: KEYS.find(key => key === value) ?? by });
        }}
      />
      <Choice
        label={trans.__('Time')}
        value={String(days)}
        options={DAYS.map(count => [String(count), trans.__('%1 days', count)])}
        choose={value => model.choose({ days: Number(value) })}
      />
      <Choice
        label={trans.__('Cluster')}
        value={cluster ?? ''}
        options={[
          ['', trans.__('all')],
          ...[...clusters].map(name => [name, name] as const)
        ]}
        choose={value => model.choose({ cluster: value || null })}
      />
    </>
  );
}

const KEYS: readonly By[] = ['user', 'account', 'queue', 'notebook', 'cluster'];

const DAYS = [7, 30, 90];

function Choice(props: {
  label: string;
  value: string;
  /** Values and words. */
  options: readonly (readonly [string, string])[];
  choose: (value: string) => void;
}): JSX.Element {
  const { choose, label, options, value } = props;
  return (
    <label className="jp-HyperPod-field">
      {label}
      <select
        className="jp-HyperPod-select"
        value={value}
        onChange={event => choose(event.target.value)}
      >
        {options.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function keyLabel(by: By, trans: TranslationBundle): string {
  const labels: Readonly<Record<By, string>> = {
    user: trans.__('User'),
    account: trans.__('Account'),
    queue: trans.__('Queue'),
    notebook: trans.__('Notebook'),
    cluster: trans.__('Cluster')
  };
  return labels[by];
}

interface IReportProps {
  readonly report: IUsageReport;
  readonly measure: Measure;
  readonly trans: TranslationBundle;
}

function Report(props: IReportProps): JSX.Element {
  const { measure, report, trans } = props;
  const key = React.useId();
  // Drawn again only for other values.
  const chart = React.useMemo(
    () => usageChart(report, measure, trans),
    [report, measure, trans]
  );
  if (report.rows.length === 0) {
    return (
      <>
        <p className="jp-HyperPod-Message" role="status">
          {trans.__(
            'No job ran in this time. Choose a longer time or another cluster, or start a run: it is counted from its first second.'
          )}
        </p>
        <Notes notes={report.notes} />
      </>
    );
  }
  return (
    <>
      <Chart
        // Other curves, or another time, are another drawing.
        key={`${chart.times.join()} ${chart.curves.map(one => one.label).join()}`}
        chart={chart}
        cursorKey={key}
        spoken={trans.__('The table below has the same in figures.')}
      >
        {at => <Legend chart={chart} at={at} />}
      </Chart>
      <UsageTable {...props} chart={chart} />
      <Notes notes={report.notes} />
    </>
  );
}

/** The keys with the values of the day under the cursor, else of all days. */
function Legend(props: { chart: IUsageChart; at: number | null }): JSX.Element {
  const { at, chart } = props;
  return (
    <ul className="jp-HyperPod-UsagePage-legend">
      {[...chart.curves].reverse().map(({ colour, label, total, values }) => (
        <li key={label}>
          <Swatch colour={colour} />
          {label}
          <span>{chart.text(at === null ? total : (values[at] ?? 0))}</span>
        </li>
      ))}
    </ul>
  );
}

function Swatch({ colour }: { colour: string | undefined }): JSX.Element {
  return (
    <span
      className="jp-HyperPod-UsagePage-swatch"
      style={{ background: colour }}
    />
  );
}

function UsageTable(props: IReportProps & { chart: IUsageChart }): JSX.Element {
  const { chart, measure, report, trans } = props;
  const { currency } = report;
  const [isWhole, setWhole] = React.useState(false);
  const rows = sortedRows(report, measure);
  const shown = isWhole ? rows : rows.slice(0, ROWS);
  const sum = (of: Measure | 'runs') =>
    rows.reduce((all, row) => all + (row[of] ?? 0), 0);
  const isPartial = rows.some(row => row.amount === null);
  const columns = measuresOf(report);
  return (
    <section className="jp-HyperPod-Table" aria-label={trans.__('Usage')}>
      <div className="jp-HyperPod-Table-scroll" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {[
                keyLabel(report.by, trans),
                trans.__('Jobs'),
                ...columns.map(column => measureLabel(column, trans)),
                trans.__('Share of %1', measureLabel(measure, trans))
              ].map(label => (
                <th key={label} scope="col">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(row => (
              <tr key={row.key}>
                <th scope="row">
                  <Swatch colour={chart.colours.get(row.key)} />
                  <span className="jp-HyperPod-Table-name" title={row.key}>
                    {chart.texts.get(row.key)}
                  </span>
                </th>
                <td>{row.runs}</td>
                {columns.map(column => (
                  <td key={column}>
                    {measureText(row[column], column, currency)}
                  </td>
                ))}
                <td>
                  <Share amount={row[measure]} total={sum(measure)} />
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">{trans.__('Total')}</th>
              <td>{sum('runs')}</td>
              {columns.map(column => {
                const text = measureText(sum(column), column, currency);
                return (
                  <td key={column}>
                    {column === 'amount' && isPartial
                      ? trans.__('at least %1', text)
                      : text}
                  </td>
                );
              })}
              <td />
            </tr>
          </tfoot>
        </table>
      </div>
      {rows.length > shown.length && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => setWhole(true)}
        >
          {trans.__('Show %1 more', rows.length - shown.length)}
        </button>
      )}
    </section>
  );
}

/** Where AWS shows what it charges for the clusters. */
function Bills(props: {
  bills: IUsageReport['bills'];
  trans: TranslationBundle;
}): JSX.Element | null {
  const { bills, trans } = props;
  return bills.length === 0 ? null : (
    <ul className="jp-HyperPod-Links" aria-label={trans.__('AWS bill')}>
      {bills.map(({ cluster, url }) => (
        <li key={cluster}>
          <a href={url} target="_blank" rel="noopener noreferrer">
            {trans.__('AWS bill of %1 in Cost Explorer', cluster)}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** A part of all, as a bar and in percent. */
function Share(props: { amount: number | null; total: number }): JSX.Element {
  const { amount, total } = props;
  if (amount === null || total === 0) {
    return <>–</>;
  }
  const percent = (100 * amount) / total;
  return (
    <span className="jp-HyperPod-UsagePage-share">
      <Bar parts={[{ use: 'used', amount }]} total={total} />
      <span>{percent > 0 && percent < 1 ? '< 1' : Math.round(percent)} %</span>
    </span>
  );
}
