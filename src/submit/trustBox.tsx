import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SubmitModel } from './model';

/**
 * Asks whether another user's code may run with this user's rights. Nothing where the code is this user's own.
 */
export function TrustBox(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { model, trans } = props;
  const id = React.useId();
  const owner = model.foreignOwner;
  if (owner === null) {
    return null;
  }
  return (
    <div className="jp-HyperPod-TrustBox">
      <p id={id} role="alert">
        {trans.__(
          'This run belongs to %1. Its code would run with your permissions. Review it under “Code” on the run page first.',
          owner
        )}
      </p>
      <label className="jp-HyperPod-check">
        <input
          type="checkbox"
          data-trust
          aria-describedby={id}
          checked={model.draft.trusted}
          onChange={event => model.choose({ trusted: event.target.checked })}
        />
        {trans.__('Run %1’s code with my permissions', owner)}
      </label>
    </div>
  );
}
