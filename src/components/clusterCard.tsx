import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateChip } from './stateChip';

/**
 * A cluster in a list of the panel: its name and its state, then what the list has to say of it.
 */
export function ClusterCard(props: {
  name: string;
  state: string;
  /** The word for the state. */
  stateText: string;
  reason: string | null;
  open: () => void;
  trans: TranslationBundle;
  /** Lines of words. */
  children: React.ReactNode;
}): JSX.Element {
  return (
    <li>
      <button type="button" className="jp-HyperPod-item" onClick={props.open}>
        <span className="jp-HyperPod-item-name">{props.name}</span>
        <StateChip
          state={props.state}
          text={props.stateText}
          reason={props.reason}
          trans={props.trans}
        />
        {props.children}
      </button>
    </li>
  );
}

/** A line on a card. */
export function CardLine(props: { children: React.ReactNode }): JSX.Element {
  return <span className="jp-HyperPod-item-detail">{props.children}</span>;
}

/** Words that may be long: two lines of them, and the rest under the pointer. */
export function CardNote({ words }: { words: string }): JSX.Element | null {
  return words === '' ? null : (
    <span className="jp-HyperPod-item-detail jp-mod-clamped" title={words}>
      {words}
    </span>
  );
}
