import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IErrorBody } from '../api';
import { errorText } from '../components/errorMessage';
import { useTick } from '../components/useTick';
import { durationText } from '../components/words';

/**
 * Says above a table how old its rows are, and why there are no newer ones.
 */
export function StaleNote(props: {
  /** The moment at which the cluster said them. */
  asOf: string;
  problem: IErrorBody;
  /** Whether they are from AWS and not from the cluster. */
  isAws?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { asOf, isAws = false, problem, trans } = props;
  useTick(true);
  const age = durationText(asOf, null, trans);
  return (
    <div className="jp-HyperPod-Message jp-mod-stale">
      <p>
        {isAws
          ? trans.__('Updated %1 ago. AWS has not sent newer data.', age)
          : trans.__('Updated %1 ago. The cluster does not respond.', age)}
      </p>
      <p role="status">{errorText(problem, trans)}</p>
      {problem.hint && <p>{problem.hint}</p>}
    </div>
  );
}
