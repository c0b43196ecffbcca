import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { stateText } from './words';

/**
 * A state, as a word with a colour.
 */
export function StateChip(props: {
  state: string;
  /** The word for it, where it is no run's or cluster's state. */
  text?: string;
  reason?: string | null;
  trans: TranslationBundle;
}): JSX.Element {
  return (
    <span
      className="jp-HyperPod-StateChip"
      data-state={props.state}
      title={props.reason ?? undefined}
    >
      {props.text ?? stateText(props.state, props.trans)}
    </span>
  );
}
