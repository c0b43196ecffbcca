import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Bar } from '../clusters/bar';
import { ErrorMessage } from '../components/errorMessage';
import { hoursText, moneyText } from '../components/words';
import { sentenceText } from '../runs/words';
import type { IRunCost } from './client';
import { CostModel } from './costModel';
import { priceLines } from './words';

/**
 * What a run has cost so far, how much of it was wasted, and by which prices. Nothing before it is known.
 */
export function CostSection(props: {
  model: CostModel;
  /** Shows the page of usage; null where it is switched off. */
  openUsage: (() => void) | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, openUsage, trans } = props;
  const { error, value } = model;
  if (!value) {
    return (
      error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.refresh()}
        />
      )
    );
  }
  const prices = priceLines(value.prices, value.currency, trans);
  return (
    <section className="jp-HyperPod-Cost">
      <h2>
        {trans.__('Cost')}
        <span className="jp-HyperPod-Usage-source">
          {value.source === 'accounting'
            ? trans.__('from the scheduler’s accounting')
            : trans.__('from the run’s records')}
        </span>
      </h2>
      <dl className="jp-HyperPod-facts" aria-label={trans.__('Cost')}>
        {factsOf(value, trans).map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <Shares cost={value} trans={trans} />
      <p className="jp-HyperPod-Cost-notes">
        {[...prices, ...value.notes].map(note => (
          <span key={note}>{sentenceText(note)}. </span>
        ))}
        {openUsage && (
          <button
            type="button"
            className="jp-HyperPod-link"
            onClick={openUsage}
          >
            {trans.__('Usage and cost')}
          </button>
        )}
      </p>
    </section>
  );
}

function factsOf(
  cost: IRunCost,
  trans: TranslationBundle
): readonly (readonly [string, string])[] {
  const { amount, currency, gpu_hours: gpuHours, node_hours: nodeHours } = cost;
  const facts: [string, string][] = [
    [trans.__('Node-hours'), hoursText(nodeHours)]
  ];
  if (gpuHours > 0) {
    facts.push([trans.__('GPU-hours'), hoursText(gpuHours)]);
  }
  return amount === null
    ? facts
    : [[trans.__('Cost'), moneyText(amount, currency)], ...facts];
}

/** How much of the hours was wasted, and how much of the others was computed on; as a bar, and in words. */
function Shares(props: {
  cost: IRunCost;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { cost, trans } = props;
  const { currency, gpu_utilization: busy, wasted_amount: money } = cost;
  const isGpu = cost.gpu_hours > 0;
  const total = isGpu ? cost.gpu_hours : cost.node_hours;
  const wasted = isGpu ? cost.wasted_gpu_hours : cost.wasted_node_hours;
  const share = isGpu && busy !== null ? busy / 100 : null;
  if (total === 0 || (wasted === 0 && share === null)) {
    return null;
  }
  const used = (total - wasted) * (share ?? 1);
  const hours = isGpu
    ? trans.__('%1 GPU-hours', hoursText(wasted))
    : trans.__('%1 node-hours', hoursText(wasted));
  return (
    <div className="jp-HyperPod-Cost-shares">
      <Bar
        parts={[
          { use: 'used', amount: used },
          { use: 'borrowed', amount: total - wasted - used },
          { use: 'off', amount: wasted }
        ]}
        total={total}
      />
      {[
        share !== null && trans.__('GPUs %1 % busy', Math.round(share * 100)),
        wasted > 0 &&
          (money === null
            ? trans.__('%1 wasted by attempts that were repeated', hours)
            : trans.__(
                '%1 (%2) wasted by attempts that were repeated',
                moneyText(money, currency),
                hours
              ))
      ]
        .filter(Boolean)
        .join(' · ')}
    </div>
  );
}
