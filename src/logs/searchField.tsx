import { TranslationBundle } from '@jupyterlab/translation';
import {
  caretDownIcon,
  caretUpIcon,
  filterIcon,
  LabIcon,
  regexIcon,
  searchIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { LogSearch } from './search';
import { LogViewModel } from './viewModel';

/** Milliseconds after the last key after which the search starts. */
const PAUSE_MS = 200;

/**
 * Looks for text in the whole log while it is typed, and steps through the lines that have it or shows only those.
 */
export function SearchField(props: {
  model: LogViewModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const { search } = model;
  const [text, setText] = React.useState(search.text);
  const pause = React.useRef<number | undefined>(undefined);
  const isNew = text !== search.text;
  const find = (wanted: string, delay: number): void => {
    window.clearTimeout(pause.current);
    pause.current = window.setTimeout(() => void model.find(wanted), delay);
  };
  React.useEffect(() => setText(search.text), [search.text]);
  React.useEffect(() => () => window.clearTimeout(pause.current), []);
  const step = (back: boolean): void => {
    if (isNew) {
      find(text, 0);
    } else {
      void (back ? search.backward() : search.forward());
    }
  };
  return (
    <span className="jp-HyperPod-LogSearch" role="search">
      <searchIcon.react tag="span" elementSize="normal" />
      <input
        type="search"
        value={text}
        placeholder={trans.__('Search in the log')}
        aria-label={trans.__('Search in the log')}
        title={trans.__(
          'Enter and Shift+Enter go to the next and the previous match'
        )}
        onChange={event => {
          setText(event.target.value);
          find(event.target.value, event.target.value === '' ? 0 : PAUSE_MS);
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            step(event.shiftKey);
          }
        }}
      />
      <span
        className={`jp-HyperPod-count${search.error ? ' jp-mod-error' : ''}`}
        role="status"
        aria-live="polite"
        title={search.error?.message}
      >
        {isNew ? '' : countText(model, trans)}
      </span>
      <Tool
        icon={regexIcon}
        label={trans.__('Use regular expression')}
        pressed={search.isRegex}
        onClick={() => void model.find(text, !search.isRegex)}
      />
      {model.client.filters && (
        <Tool
          icon={filterIcon}
          label={trans.__('Show only matching lines')}
          pressed={model.filters}
          onClick={() => (model.filters = !model.filters)}
        />
      )}
      <Steps search={search} trans={trans} step={step} />
    </span>
  );
}

function Steps(props: {
  search: LogSearch;
  trans: TranslationBundle;
  step: (back: boolean) => void;
}): JSX.Element {
  const { search, step, trans } = props;
  const disabled = search.hits.length === 0;
  return (
    <>
      <Tool
        icon={caretUpIcon}
        label={trans.__('Previous match')}
        disabled={disabled}
        onClick={() => step(true)}
      />
      <Tool
        icon={caretDownIcon}
        label={trans.__('Next match')}
        disabled={disabled}
        onClick={() => step(false)}
      />
    </>
  );
}

function Tool(props: {
  icon: LabIcon;
  label: string;
  disabled?: boolean;
  pressed?: boolean;
  onClick: () => void;
}): JSX.Element {
  const { icon, label, disabled, onClick, pressed } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-IconButton"
      aria-label={label}
      aria-pressed={pressed}
      title={label}
      disabled={disabled}
      onClick={onClick}
    >
      <icon.react tag="span" elementSize="normal" />
    </button>
  );
}

function countText(model: LogViewModel, trans: TranslationBundle): string {
  const { search } = model;
  if (search.text === '') {
    return '';
  }
  if (search.error) {
    return search.isRegex
      ? trans.__('Invalid expression')
      : trans.__('Cannot search');
  }
  if (search.busy && search.hits.length === 0) {
    return trans.__('Searching…');
  }
  if (search.hits.length === 0) {
    return trans.__('Not found');
  }
  const [at, count] = [search.at + 1, search.hits.length];
  const total = search.more ? `${count}+` : `${count}`;
  return at === 0
    ? trans._n('%2 match', '%2 matches', count, total)
    : trans.__('%1 of %2', at, total);
}
