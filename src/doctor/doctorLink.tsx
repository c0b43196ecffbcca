import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/**
 * Leads from something that is not well to what finds out why.
 */
export function DoctorLink(props: {
  open: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { open, trans } = props;
  return (
    <p className="jp-HyperPod-Message">
      <button type="button" className="jp-HyperPod-button" onClick={open}>
        {trans.__('Run HyperPod Doctor')}
      </button>
    </p>
  );
}
