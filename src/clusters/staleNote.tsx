import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../api';
import { errorText } from '../components/errorMessage';
import { useTick } from '../components/useTick';
import { durationText } from '../components/words';

/**
 * Says above a table how old its rows are, and why there are no newer ones.
 */
export function StaleNote(props: {
  /** The moment at which the cluster said them. */
  asOf: string;
  problem: ApiError;
  trans: TranslationBundle;
}): JSX.Element {
  const { asOf, problem, trans } = props;
  useTick(true);
  return (
    <div className="jp-HyperPod-Message jp-mod-stale">
      <p>
        {trans.__(
          'As of %1 ago: the cluster does not answer.',
          durationText(asOf, null, trans)
        )}
      </p>
      <p role="status">{errorText(problem, trans)}</p>
      {problem.hint && <p>{problem.hint}</p>}
    </div>
  );
}
