import { TranslationBundle } from '@jupyterlab/translation';
import { LabIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { stateText } from './words';

/** A path in a square of 16. */
const SHAPES: Readonly<Record<string, string>> = {
  dot: 'M8 4.500a3.500 3.500 0 1 1 0 7a3.500 3.500 0 1 1 0-7z',
  ring: 'M8 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8zm0 1.500a2.500 2.500 0 1 0 0 5a2.500 2.500 0 1 0 0-5z',
  play: 'M5 3.500l7.500 4.500l-7.500 4.500z',
  clock:
    'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 1 1 0-11zm0 1.500a4 4 0 1 0 0 8a4 4 0 1 0 0-8zm-.75 1.500h1.500v2.250l1.750 1.750l-1 1l-2.250-2.250z',
  check: 'M6.500 10.200l6-6l1.100 1.100l-7.100 7.100l-4.100-4.100l1.100-1.100z',
  cross:
    'M4.600 3.500l3.400 3.400l3.400-3.400l1.100 1.100l-3.400 3.400l3.400 3.400l-1.100 1.100l-3.400-3.400l-3.400 3.400l-1.100-1.100l3.400-3.400l-3.400-3.400z',
  slash:
    'M8 2.500a5.500 5.500 0 1 1 0 11a5.500 5.500 0 1 1 0-11zm-3.100 3.600a4 4 0 0 0 5 5zm1.100-1.100l5 5a4 4 0 0 0-5-5z',
  diamond: 'M8 3l5 5l-5 5l-5-5z',
  triangle: 'M8 3l5.500 10h-11z'
};

type Look = readonly [shape: keyof typeof SHAPES, tone: string];

const LOOKS: Readonly<Record<string, Look>> = {
  submitting: ['clock', 'warn'],
  waiting: ['clock', 'warn'],
  running: ['play', 'info'],
  succeeded: ['check', 'good'],
  failed: ['cross', 'bad'],
  cancelled: ['slash', 'quiet'],
  unknown: ['triangle', 'warn'],
  up: ['dot', 'good'],
  down: ['diamond', 'bad'],
  unreachable: ['diamond', 'bad'],
  misconfigured: ['diamond', 'bad'],
  'not-found': ['diamond', 'bad'],
  'not-connected': ['ring', 'quiet'],
  ok: ['check', 'good'],
  warn: ['triangle', 'warn'],
  fail: ['cross', 'bad'],
  'not-checked': ['ring', 'quiet']
};

/** States that change without the user, for example `creating`. */
const OTHER: Look = ['triangle', 'warn'];

/**
 * A state as a shape with a colour; its word is under the pointer, and read to who does not see it.
 */
export function StateIcon(props: {
  state: string;
  /** The word for it, where it is no run's or cluster's state. */
  text?: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { state, text = stateText(state, props.trans) } = props;
  const [shape, tone] = LOOKS[state] ?? OTHER;
  return (
    <span
      className="jp-HyperPod-StateIcon"
      data-state={state}
      data-tone={tone}
      role="img"
      aria-label={text}
      title={text}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d={SHAPES[shape]} />
      </svg>
    </span>
  );
}

/** A state's shape and colour as an icon, for tabs. */
export function stateLabIcon(state: string): LabIcon {
  const [shape, tone] = LOOKS[state] ?? OTHER;
  const name = `hyperpod_jlab:${shape}-${tone}`;
  const there = icons.get(name);
  const icon =
    there ??
    new LabIcon({
      name,
      svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-HyperPod-StateShape" data-tone="${tone}" d="${SHAPES[shape]}"/></svg>`
    });
  icons.set(name, icon);
  return icon;
}

/** Those that were made. */
const icons = new Map<string, LabIcon>();
