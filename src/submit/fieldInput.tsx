import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IField } from './fields';

interface IProps {
  id: string;
  describedBy: string;
  field: IField;
  text: string;
  invalid: boolean;
  disabled: boolean;
  /** Values to choose from, though others are right too. */
  proposals: readonly string[];
  trans: TranslationBundle;
  /** What counts while nothing is typed in. */
  placeholder: string;
  onChange: (text: string) => void;
}

/**
 * What a field is typed into.
 */
export function FieldInput(props: IProps): JSX.Element {
  switch (props.field.kind) {
    case 'choice':
    case 'truth':
      return <Choice {...props} />;
    case 'lines':
    case 'pairs':
    case 'json':
    case 'long':
      return <Lines {...props} />;
    default:
      return <Line {...props} />;
  }
}

function Line(props: IProps): JSX.Element {
  const { field, proposals } = props;
  const list = proposals.length > 0 ? `${props.id}-list` : undefined;
  return (
    <>
      <input
        {...attributes(props)}
        className="jp-HyperPod-input"
        type="text"
        inputMode={field.kind === 'integer' ? 'numeric' : undefined}
        autoComplete="off"
        spellCheck={false}
        list={list}
        placeholder={props.placeholder}
      />
      {list && (
        <datalist id={list}>
          {proposals.map(one => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </>
  );
}

function Lines(props: IProps): JSX.Element {
  const rows = Math.min(8, Math.max(2, props.text.split('\n').length));
  return (
    <textarea
      {...attributes(props)}
      className="jp-HyperPod-input jp-HyperPod-textarea"
      placeholder={props.placeholder}
      rows={rows}
      spellCheck={false}
    />
  );
}

function Choice(props: IProps): JSX.Element {
  const { field, trans } = props;
  const choices =
    field.kind === 'truth'
      ? [
          { value: 'true', label: trans.__('Yes') },
          { value: 'false', label: trans.__('No') }
        ]
      : field.choices.map(value => ({ value, label: value }));
  const standard = choices.find(one => one.value === field.standardText);
  return (
    <select {...attributes(props)} className="jp-HyperPod-select">
      <option value="">
        {standard
          ? trans.__('Default (%1)', standard.label)
          : trans.__('Default')}
      </option>
      {choices.map(({ label, value }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** What all inputs have. */
function attributes(props: IProps): {
  id: string;
  'data-field': string;
  'aria-describedby': string;
  'aria-invalid': boolean;
  disabled: boolean;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
} {
  return {
    id: props.id,
    'data-field': props.field.path,
    'aria-describedby': props.describedBy,
    'aria-invalid': props.invalid,
    disabled: props.disabled,
    value: props.text,
    onChange: event => props.onChange(event.target.value)
  };
}
