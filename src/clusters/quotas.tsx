import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { pageLanguage } from '../components/words';
import { Bar } from './bar';
import { IQuota } from './types';

const GIB = 1024 ** 3;

/** Resources whose amounts are in bytes. */
const IN_BYTES = new Set(['memory', 'ephemeral-storage']);

/**
 * A queue's quota: for each resource a bar with what is used of it, and of what is borrowed, and the same in words.
 */
export function QuotaBars(props: {
  quotas: readonly IQuota[];
  trans: TranslationBundle;
}): JSX.Element {
  const { quotas, trans } = props;
  const hasFlavors = new Set(quotas.map(quota => quota.flavor)).size > 1;
  return (
    <ul className="jp-HyperPod-Quotas">
      {quotas.map(quota => (
        <li key={`${quota.flavor} ${quota.resource}`}>
          <Bar
            parts={[
              { use: 'used', amount: quota.used - quota.borrowed },
              { use: 'borrowed', amount: quota.borrowed }
            ]}
            total={Math.max(quota.nominal, quota.used)}
          />
          <span>{quotaText(quota, hasFlavors, trans)}</span>
        </li>
      ))}
    </ul>
  );
}

/** What is used of a quota, and what more one could get. */
export function quotaText(
  quota: IQuota,
  hasFlavors: boolean,
  trans: TranslationBundle
): string {
  const { borrowed, flavor, free, most, nominal, resource, used } = quota;
  const name = hasFlavors ? `${resource} (${flavor})` : resource;
  const text = (amount: number): string => amountText(amount, resource, trans);
  const parts = [
    trans.__('%1: %2 of %3 in use', name, text(used), text(nominal))
  ];
  if (borrowed > 0) {
    parts.push(trans.__('%1 of it borrowed', text(borrowed)));
  }
  parts.push(trans.__('%1 free', text(free)));
  if (most > nominal) {
    parts.push(trans.__('at most %1 with borrowing', text(most)));
  }
  return parts.join('; ');
}

function amountText(
  amount: number,
  resource: string,
  trans: TranslationBundle
): string {
  const options = { maximumFractionDigits: 1 };
  const write = new Intl.NumberFormat(pageLanguage(), options);
  return IN_BYTES.has(resource)
    ? trans.__('%1 GiB', write.format(amount / GIB))
    : write.format(amount);
}
