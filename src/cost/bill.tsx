import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Bar } from '../clusters/bar';
import { ErrorMessage } from '../components/errorMessage';
import { Notes } from '../components/notes';
import { useLoaded } from '../components/useLoaded';
import { hoursText, moneyText, shortMomentText } from '../components/words';
import type { IBill, ICostClient } from './client';
import { IdleTable } from './idle';

/** The code of the error of clusters that have no bill. */
const NO_BILL = 'no_hyperpod_cluster';
const NOT_ASKED = 'paid_request';

/**
 * What AWS charges for a cluster this month. AWS charges for the question, too, so the user asks it.
 */
export function Bill(props: {
  client: ICostClient;
  cluster: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { client, cluster, trans } = props;
  const [asked, setAsked] = React.useState(0);
  const load = React.useCallback(
    () => (asked ? client.askForBill(cluster) : client.bill(cluster)),
    [asked, client, cluster]
  );
  const { error, retry, value: bill } = useLoaded(load);
  if (error && error.code === NO_BILL) {
    return null;
  }
  const ask = (
    <button
      type="button"
      className="jp-HyperPod-button"
      onClick={() => setAsked(asked + 1)}
    >
      {bill ? trans.__('Ask again ($0.02)') : trans.__('Ask AWS ($0.02)')}
    </button>
  );
  return (
    <section className="jp-HyperPod-Bill">
      <h2>{trans.__('AWS bill, this month so far')}</h2>
      {error?.code === NOT_ASKED && (
        <p>
          {trans.__('AWS charges $0.01 for each of about two requests.')} {ask}
        </p>
      )}
      {error && error.code !== NOT_ASKED && (
        <ErrorMessage
          error={error}
          trans={trans}
          // What AWS has answered before is free.
          retry={() => (asked ? setAsked(0) : retry())}
        />
      )}
      {!error && !bill && <p role="status">{trans.__('Loading…')}</p>}
      {bill && (
        <>
          <dl className="jp-HyperPod-facts" aria-label={trans.__('Bill')}>
            {[
              [trans.__('So far'), money(bill.amount, bill.currency)],
              [
                trans.__('Expected for the month'),
                money(bill.forecast, bill.currency)
              ],
              [trans.__('Node-hours paid'), hoursText(bill.node_hours_paid)],
              [
                trans.__('Node-hours of jobs'),
                bill.counted_node_hours === null
                  ? '–'
                  : hoursText(bill.counted_node_hours)
              ]
            ].map(([name, text]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          <Budget bill={bill} trans={trans} />
          <IdleTable
            rows={bill.idle}
            currency={bill.currency ?? 'USD'}
            label={trans.__('Paid')}
            trans={trans}
          />
          <p>
            {trans.__('AWS was asked %1.', shortMomentText(bill.asked_at))}{' '}
            {ask}
          </p>
          <Notes notes={bill.notes} />
        </>
      )}
    </section>
  );
}

/** How much of the month's budget is spent, and what AWS expects on top of it. */
function Budget(props: {
  bill: IBill;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { bill, trans } = props;
  const { amount, budget, forecast } = bill;
  if (!budget?.limit) {
    return null;
  }
  const expected = Math.max(0, (forecast ?? 0) - (amount ?? 0));
  const total = Math.max(budget.limit, budget.spent + expected);
  return (
    <div className="jp-HyperPod-Cost-shares">
      <Bar
        parts={[
          { use: 'used', amount: budget.spent },
          { use: 'off', amount: expected }
        ]}
        total={total}
      />
      <span>
        {trans.__(
          '%1 of the budget of %2 spent (%3%)',
          moneyText(budget.spent, budget.currency),
          moneyText(budget.limit, budget.currency),
          Math.round((100 * budget.spent) / budget.limit)
        )}
      </span>
    </div>
  );
}

function money(amount: number | null, currency: string | null): string {
  return amount === null || currency === null
    ? '–'
    : moneyText(amount, currency);
}
