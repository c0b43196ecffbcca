import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { pageLanguage } from '../components/words';
import { formatRanks } from './ranks';
import { ILogStream } from './types';
import { LogViewModel } from './viewModel';

/** More would only make a long list of proposals. */
const MOST_PROPOSALS = 256;

/**
 * Chooses ranks: all, one, or some.
 */
export function RanksField(props: {
  model: LogViewModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const list = React.useId();
  const [text, setText] = React.useState(model.ranks);
  const [isWrong, setWrong] = React.useState(false);
  const ranks = model.streams.filter(stream => stream.rank !== null);
  if (ranks.length < 2 && model.ranks === '') {
    return null;
  }
  const absent = absentText(model, trans);
  const choose = (value: string): void => setWrong(!model.chooseRanks(value));
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Ranks')}
      <input
        className="jp-HyperPod-input jp-mod-ranks"
        list={list}
        value={text}
        placeholder={trans.__('all')}
        title={
          absent ?? trans.__('For example 0-3, 7. Leave empty for all ranks.')
        }
        aria-invalid={isWrong || absent !== null}
        onChange={event => setText(event.target.value)}
        onBlur={() => choose(text)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            choose(text);
          }
        }}
      />
      <datalist id={list}>
        {ranks.slice(0, MOST_PROPOSALS).map(stream => (
          <option
            key={`${stream.index ?? ''}.${stream.rank}`}
            value={stream.rank ?? ''}
          >
            {rankText(stream, trans)}
          </option>
        ))}
      </datalist>
    </label>
  );
}

/** Says that chosen ranks are none of the run's; null when they are. */
export function absentText(
  model: LogViewModel,
  trans: TranslationBundle
): string | null {
  const { absent } = model;
  if (absent.length === 0) {
    return null;
  }
  const ranks = formatRanks(model.knownRanks);
  return model.feed.over
    ? trans.__(
        'Rank %1 not found. The ranks are %2.',
        formatRanks(absent),
        ranks
      )
    : trans.__(
        'Rank %1 not found yet. The ranks so far are %2.',
        formatRanks(absent),
        ranks
      );
}

/** Where a rank runs, and since when it has said nothing. */
function rankText(stream: ILogStream, trans: TranslationBundle): string {
  const { last_at: lastAt, node, silent } = stream;
  if (!silent) {
    return node;
  }
  return lastAt === null
    ? trans.__('%1: no output', node)
    : trans.__(
        '%1: silent since %2',
        node,
        new Date(lastAt).toLocaleTimeString(pageLanguage())
      );
}
