import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { Bar } from '../clusters/bar';
import { hoursText, moneyText } from '../components/words';

/**
 * Nodes that are there and that no job had, with what that costs.
 */
export function IdleTable(props: {
  rows: readonly (Schema<'IdleRow'> & { readonly cluster?: string })[];
  currency: string;
  /** What the hours of the nodes are called: paid, or present. */
  label: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { currency, label, rows, trans } = props;
  if (rows.length === 0) {
    return null;
  }
  const hasCluster = rows.some(row => row.cluster !== undefined);
  return (
    <section className="jp-HyperPod-Table" aria-label={trans.__('Idle nodes')}>
      <h2>{trans.__('Idle nodes')}</h2>
      <div className="jp-HyperPod-Table-scroll" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {hasCluster && <th scope="col">{trans.__('Cluster')}</th>}
              <th scope="col">{trans.__('Instance type')}</th>
              <th scope="col">{label}</th>
              <th scope="col">{trans.__('Allocated')}</th>
              <th scope="col">{trans.__('Idle')}</th>
              <th scope="col">{trans.__('Cost of idle nodes')}</th>
              <th scope="col">{trans.__('Use')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={`${row.cluster} ${row.instance_type}`}>
                {hasCluster && <th scope="row">{row.cluster}</th>}
                <th scope="row">{row.instance_type}</th>
                <td>{hoursText(row.paid_hours)}</td>
                <td>{hoursText(row.used_hours)}</td>
                <td>{hoursText(row.idle_hours)}</td>
                <td>
                  {row.amount === null ? '–' : moneyText(row.amount, currency)}
                </td>
                <td>
                  <span className="jp-HyperPod-UsagePage-share">
                    <Bar
                      parts={[
                        { use: 'used', amount: row.used_hours },
                        { use: 'off', amount: row.idle_hours }
                      ]}
                      total={row.used_hours + row.idle_hours}
                    />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
