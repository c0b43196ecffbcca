import { TranslationBundle } from '@jupyterlab/translation';

import type { Schema } from '../api';
import { moneyText } from '../components/words';

/** The prices that were used, and where each is from. */
export function priceLines(
  prices: readonly Schema<'Price'>[],
  currency: string,
  trans: TranslationBundle
): readonly string[] {
  return prices.map(({ instance_type: type, price, source }) =>
    trans.__(
      '%1 per %2 and hour, from %3',
      moneyText(price, currency),
      type ?? trans.__('node'),
      source === 'price_list'
        ? trans.__('the AWS Price List')
        : trans.__('the configuration')
    )
  );
}
