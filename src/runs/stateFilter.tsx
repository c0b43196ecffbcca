import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateIcon } from '../components/stateIcon';
import { stateText } from '../components/words';
import { FILTERS } from './filter';
import { IRun } from './types';

/**
 * A toggle for each state that some run is in, with their number.
 */
export function StateFilter(props: {
  runs: readonly IRun[];
  /** The states that are offered; each of them is one of `FILTERS`. */
  offered: readonly string[];
  states: ReadonlySet<string>;
  change: (states: ReadonlySet<string>) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { change, offered, runs, states, trans } = props;
  const toggle = (state: string) => {
    const next = new Set(states);
    if (!next.delete(state)) {
      next.add(state);
    }
    change(next);
  };
  return (
    <>
      {offered.map(state => {
        const count = runs.filter(run =>
          FILTERS[state].includes(run.state)
        ).length;
        const isOn = states.has(state);
        const label = trans.__('Show only %1 runs', stateText(state, trans));
        return (
          (count > 0 || isOn) && (
            <button
              key={state}
              type="button"
              className="jp-HyperPod-RunFilter-state"
              aria-pressed={isOn}
              aria-label={label}
              title={label}
              onClick={() => toggle(state)}
            >
              <StateIcon state={state} trans={trans} />
              {count}
            </button>
          )
        );
      })}
    </>
  );
}
