import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { useTick } from '../components/useTick';
import { durationText } from '../components/words';

/**
 * Says how long ago AWS was asked for what is shown, and whether more is on its way.
 */
export function AwsAge(props: {
  asOf: string;
  isLoading?: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { asOf, isLoading = false, trans } = props;
  useTick(true);
  const age = durationText(asOf, null, trans);
  return (
    <p className="jp-HyperPod-AwsAge">
      {isLoading
        ? trans.__('Updated %1 ago. Refreshing…', age)
        : trans.__('Updated %1 ago', age)}
    </p>
  );
}
