import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SubmitModel } from './model';

/**
 * Fields for the values of secrets that have no reference. What is typed here is sent once and kept nowhere.
 */
export function SecretValues(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const id = React.useId();
  return (
    <>
      {model.openSecrets.map(name => (
        <div key={name} className="jp-HyperPod-FieldRow">
          <label htmlFor={`${id}-${name}`}>
            {trans.__('Value of %1', name)}
          </label>
          <input
            id={`${id}-${name}`}
            className="jp-HyperPod-input"
            type="password"
            autoComplete="off"
            value={model.draft.secrets[name] ?? ''}
            onChange={event => model.setSecret(name, event.target.value)}
          />
        </div>
      ))}
    </>
  );
}
