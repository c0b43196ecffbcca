import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from './errorMessage';
import { useLoaded } from './useLoaded';

/**
 * A text, once it is read.
 *
 * @param load - reads it; another function reads another text
 */
export function LoadedText(props: {
  load: () => Promise<string>;
  trans: TranslationBundle;
}): JSX.Element {
  const { trans } = props;
  const { error, retry, value } = useLoaded(props.load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  if (value === null) {
    return (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  return <pre tabIndex={0}>{value}</pre>;
}
