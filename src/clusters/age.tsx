import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { errorText } from '../components/errorMessage';
import { Hint } from '../components/hint';
import { useTick } from '../components/useTick';
import { durationText } from '../components/words';
import { IAged } from './types';

/**
 * Says how old something is that a cluster or AWS told, whether more is on its way, and why there is nothing newer. What is from now has no age.
 */
export function Age(props: {
  aged: Partial<IAged>;
  /** Shown under the pointer. */
  title?: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { aged, title, trans } = props;
  const { as_of: asOf, loading, problem } = aged;
  useTick(Boolean(asOf));
  if (!asOf) {
    return null;
  }
  const age = durationText(asOf, null, trans);
  return problem ? (
    <div className="jp-HyperPod-Message jp-mod-stale">
      <p>{trans.__('Updated %1 ago. Newer data is not available.', age)}</p>
      <p role="status">{errorText(problem, trans)}</p>
      {problem.hint && <Hint hint={problem.hint} trans={trans} />}
    </div>
  ) : (
    <p className="jp-HyperPod-AwsAge" title={title}>
      {loading
        ? trans.__('Updated %1 ago. Refreshing…', age)
        : trans.__('Updated %1 ago', age)}
    </p>
  );
}
