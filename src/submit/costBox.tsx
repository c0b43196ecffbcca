import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { sentence } from './findingList';

/**
 * Asks whether a run may cost more than the limit; the dialog's button says yes. It takes the focus, so that a second Enter does not.
 */
export function CostBox(props: {
  question: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { question, trans } = props;
  const text = React.useRef<HTMLParagraphElement>(null);
  React.useEffect(() => text.current?.focus(), []);
  return (
    <div className="jp-HyperPod-TrustBox">
      <p ref={text} role="alert" tabIndex={-1} data-cost>
        {sentence(question)} {trans.__('Submit it anyway?')}
      </p>
    </div>
  );
}
