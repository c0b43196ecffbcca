import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { FieldInput } from './fieldInput';
import { IField } from './fields';
import { labelOf } from './labels';

/**
 * A field with its label, its explanation, and what is wrong with it.
 */
export function FieldRow(props: {
  field: IField;
  text: string;
  problem: string | undefined;
  overruled: boolean;
  proposals: readonly string[];
  placeholder: string;
  trans: TranslationBundle;
  onChange: (text: string) => void;
}): JSX.Element {
  const { field, problem, trans } = props;
  const id = React.useId();
  const described = [
    `${id}-help`,
    ...(problem === undefined ? [] : [`${id}-problem`])
  ];
  return (
    <div className="jp-HyperPod-FieldRow">
      <label htmlFor={id}>{labelOf(field, trans)}</label>
      <FieldInput
        id={id}
        describedBy={described.join(' ')}
        field={field}
        text={props.text}
        invalid={problem !== undefined}
        disabled={props.overruled}
        proposals={props.proposals}
        placeholder={props.placeholder}
        trans={trans}
        onChange={props.onChange}
      />
      <p id={`${id}-help`} className="jp-HyperPod-FieldRow-help">
        {field.description}
        {howTo(field, trans)}
      </p>
      {problem !== undefined && (
        <p id={`${id}-problem`} className="jp-HyperPod-FieldRow-problem">
          {problem}
        </p>
      )}
    </div>
  );
}

/** How a field is written that takes more than one value. */
function howTo(field: IField, trans: TranslationBundle): string {
  if (field.path === 'environment.secrets') {
    return ` ${trans.__('One NAME or NAME=REFERENCE per line.')}`;
  }
  switch (field.kind) {
    case 'lines':
      return ` ${trans.__('One per line.')}`;
    case 'pairs':
      return ` ${trans.__('One NAME=VALUE per line.')}`;
    default:
      return '';
  }
}
