import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretUpIcon, LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { LogSearch } from './search';
import { LogViewModel } from './viewModel';

/**
 * Looks for text in the whole log and steps through the lines that have it.
 */
export function SearchField(props: {
  model: LogViewModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans } = props;
  const { search } = props.model;
  const [text, setText] = React.useState(search.text);
  const isNew = text !== search.text;
  const enter = (back: boolean): void => {
    if (isNew) {
      void search.find(text);
    } else {
      void (back ? search.backward() : search.forward());
    }
  };
  return (
    <span className="jp-HyperPod-field jp-mod-search" role="search">
      <input
        className="jp-HyperPod-input"
        type="search"
        value={text}
        placeholder={trans.__('Search in the log')}
        aria-label={trans.__('Search in the log')}
        title={trans.__('Regular expression. Press Enter to search.')}
        onChange={event => {
          setText(event.target.value);
          if (event.target.value === '') {
            void search.find('');
          }
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            enter(event.shiftKey);
          }
        }}
      />
      <Hits search={search} trans={trans} isNew={isNew} step={enter} />
    </span>
  );
}

function Hits(props: {
  search: LogSearch;
  trans: TranslationBundle;
  isNew: boolean;
  step: (back: boolean) => void;
}): JSX.Element {
  const { isNew, search, step, trans } = props;
  return (
    <>
      <span
        className={`jp-HyperPod-count${search.error ? ' jp-mod-error' : ''}`}
        role="status"
        aria-live="polite"
        title={search.error?.message}
      >
        {isNew ? '' : countText(search, trans)}
      </span>
      <span className="jp-HyperPod-field">
        <StepButton
          icon={caretUpIcon}
          label={trans.__('Previous match')}
          disabled={search.hits.length === 0}
          onClick={() => step(true)}
        />
        <StepButton
          icon={caretDownIcon}
          label={trans.__('Next match')}
          disabled={search.hits.length === 0}
          onClick={() => step(false)}
        />
      </span>
    </>
  );
}

function StepButton(props: {
  icon: LabIcon;
  label: string;
  disabled: boolean;
  onClick: () => void;
}): JSX.Element {
  const { icon, label, disabled, onClick } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-button"
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={onClick}
    >
      <icon.react tag="span" elementSize="normal" />
    </button>
  );
}

function countText(search: LogSearch, trans: TranslationBundle): string {
  if (search.text === '') {
    return '';
  }
  if (search.error) {
    return trans.__('Cannot search: %1', search.error.message);
  }
  if (search.busy && search.hits.length === 0) {
    return trans.__('Searching…');
  }
  if (search.hits.length === 0) {
    return trans.__('Not found');
  }
  const [at, count] = [search.at + 1, search.hits.length];
  return search.more
    ? trans.__('%1 of %2+', at, count)
    : trans.__('%1 of %2', at, count);
}
