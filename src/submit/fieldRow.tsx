import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IField } from './fields';
import { labelOf } from './labels';

/**
 * Connects an input with its label and its messages.
 */
export interface IInput {
  readonly id: string;
  readonly describedBy: string;
  readonly invalid: boolean;
}

/**
 * A field below its label. What it means is a tooltip and read out; what is wrong with it stands below.
 */
export function FieldRow(props: {
  field: IField;
  problem: string | undefined;
  trans: TranslationBundle;
  input: (input: IInput) => JSX.Element;
}): JSX.Element {
  const { field, input, problem, trans } = props;
  const id = React.useId();
  const help = helpOf(field, trans);
  const hasWords = problem !== undefined && problem !== '';
  const described = [
    ...(help === '' ? [] : [`${id}-help`]),
    ...(hasWords ? [`${id}-problem`] : [])
  ];
  return (
    <div
      className="jp-HyperPod-FieldRow"
      title={help}
      data-wide={isWide(field)}
    >
      <label htmlFor={id}>{labelOf(field, trans)}</label>
      {input({
        id,
        describedBy: described.join(' '),
        invalid: problem !== undefined
      })}
      {help !== '' && (
        <span id={`${id}-help`} className="jp-HyperPod-hidden">
          {help}
        </span>
      )}
      {hasWords && (
        <p id={`${id}-problem`} className="jp-HyperPod-FieldRow-problem">
          {problem}
        </p>
      )}
    </div>
  );
}

/** Whether a field takes more than a line. */
function isWide(field: IField): boolean {
  return ['lines', 'pairs', 'json', 'long'].includes(field.kind);
}

/** What a field means, and how it is written when it takes more than one value. */
export function helpOf(field: IField, trans: TranslationBundle): string {
  return [field.description, howTo(field, trans)]
    .filter(text => text !== '')
    .join(' ');
}

/** How a field is written that takes more than one value. */
export function howTo(field: IField, trans: TranslationBundle): string {
  if (field.path === 'environment.secrets') {
    return trans.__('One NAME or NAME=REFERENCE per line.');
  }
  switch (field.kind) {
    case 'lines':
      return trans.__('One per line.');
    case 'pairs':
      return trans.__('One NAME=VALUE per line.');
    default:
      return '';
  }
}
