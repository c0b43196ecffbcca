import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../api';
import { ErrorMessage } from './errorMessage';

/** What came of an action on one thing of a table. */
export interface IResultLine {
  /** Unique among the lines. */
  key: string;
  failed: boolean;
  text: string;
}

/** What came of an action: one line for each thing, or the error that came instead. */
export interface IResults {
  lines: readonly IResultLine[];
  error: ApiError | null;
}

/**
 * What came of the last action on what was chosen in a table, told to screen readers too; null: nothing yet.
 */
export function Results(props: {
  results: IResults | null;
  close: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { close, results, trans } = props;
  return (
    <div className="jp-HyperPod-Results" aria-live="polite">
      {results?.error && <ErrorMessage error={results.error} trans={trans} />}
      {results && results.lines.length > 0 && (
        <ul aria-label={trans.__('Results')}>
          {results.lines.map(line => (
            <li key={line.key} className={line.failed ? 'jp-mod-error' : ''}>
              {line.text}
            </li>
          ))}
        </ul>
      )}
      {results && (
        <button type="button" className="jp-HyperPod-button" onClick={close}>
          {trans.__('Close')}
        </button>
      )}
    </div>
  );
}
