import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError, IErrorBody } from '../api';
import { Hint } from './hint';

/**
 * What went wrong, in words, with what to do about it.
 */
export function ErrorMessage(props: {
  error: IErrorBody;
  trans: TranslationBundle;
  retry?: () => void;
}): JSX.Element {
  const { error, retry, trans } = props;
  return (
    // Not jp-mod-error: a JupyterLab dialog that contains it cannot be accepted.
    <div className="jp-HyperPod-Message" role="alert">
      <p>{errorText(error, trans)}</p>
      {error.hint && <Hint hint={error.hint} trans={trans} />}
      {retry && (
        <button type="button" className="jp-HyperPod-button" onClick={retry}>
          {trans.__('Try again')}
        </button>
      )}
    </div>
  );
}

/** An error's sentence: the server's own, but where no server spoke. */
export function errorText(error: IErrorBody, trans: TranslationBundle): string {
  if (!(error instanceof ApiError)) {
    return error.message;
  }
  if (error.isOffline) {
    return trans.__(
      'The Jupyter server does not respond. Runs on the cluster continue.'
    );
  }
  if (error.status === 403) {
    return trans.__('Permission denied: %1', error.message);
  }
  if (error.isForeign) {
    return trans.__(
      'The server does not have the HyperPod extension. Install and enable hyperpod_jlab there.'
    );
  }
  return error.message;
}
