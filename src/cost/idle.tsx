import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Bar } from '../clusters/bar';
import { hoursText, moneyText } from '../components/words';
import type { IUsageReport } from './client';

/**
 * Nodes that are there and that no job had, with what that costs.
 */
export function IdleTable(props: {
  rows: IUsageReport['idle'];
  currency: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { currency, rows, trans } = props;
  if (rows.length === 0) {
    return null;
  }
  return (
    <section className="jp-HyperPod-Table" aria-label={trans.__('Idle nodes')}>
      <h2>{trans.__('Idle nodes')}</h2>
      <div className="jp-HyperPod-Table-scroll" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{trans.__('Cluster')}</th>
              <th scope="col">{trans.__('Instance type')}</th>
              <th scope="col">{trans.__('Node-hours')}</th>
              <th scope="col">{trans.__('Allocated')}</th>
              <th scope="col">{trans.__('Idle')}</th>
              <th scope="col">{trans.__('Cost of idle nodes')}</th>
              <th scope="col">{trans.__('Use')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={`${row.cluster} ${row.instance_type}`}>
                <th scope="row">{row.cluster}</th>
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
