import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { isOverruled } from './draft';
import { FieldRow } from './fieldRow';
import { IField } from './fields';
import { groupLabel, labelOf } from './labels';
import { SubmitModel } from './model';
import { SecretValues } from './secretValues';

/**
 * The basic fields, and all others behind "More".
 */
export function FieldList(props: {
  model: SubmitModel;
  trans: TranslationBundle;
  more: boolean;
  onMore: (more: boolean) => void;
}): JSX.Element {
  const { model, more, onMore, trans } = props;
  const basic = model.fields.filter(field => field.basic);
  const others = model.fields.filter(field => !field.basic);
  const used = usedFields(model).map(field => labelOf(field, trans));
  const button = React.useRef<HTMLButtonElement>(null);
  const [isOpening, setOpening] = React.useState(false);
  React.useEffect(() => {
    if (more && isOpening) {
      setOpening(false);
      button.current?.scrollIntoView({ block: 'start' });
    }
  }, [more, isOpening]);
  return (
    <>
      <Rows fields={basic} model={model} trans={trans} />
      <button
        ref={button}
        type="button"
        className="jp-HyperPod-button jp-HyperPod-MoreSettings"
        aria-expanded={more}
        onClick={() => {
          setOpening(!more);
          onMore(!more);
        }}
      >
        {more
          ? trans.__('Fewer settings')
          : used.length > 0
            ? trans.__('More settings (in use: %1)', used.join(', '))
            : trans.__('More settings')}
      </button>
      {more &&
        groupsOf(others).map(([group, fields]) => (
          <fieldset key={group} className="jp-HyperPod-FieldGroup">
            <legend>{groupLabel(group, trans)}</legend>
            <Rows fields={fields} model={model} trans={trans} />
          </fieldset>
        ))}
    </>
  );
}

/** The fields behind "More" that say something. */
export function usedFields(model: SubmitModel): readonly IField[] {
  return model.fields.filter(
    field => !field.basic && (model.texts[field.path] ?? '').trim() !== ''
  );
}

function Rows(props: {
  fields: readonly IField[];
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { fields, model, trans } = props;
  const { problems, texts } = model;
  return (
    <div className="jp-HyperPod-FieldRows">
      {fields.map(field => (
        <React.Fragment key={field.path}>
          <FieldRow
            field={field}
            text={texts[field.path] ?? ''}
            problem={problems[field.path]}
            overruled={isOverruled(model.draft, field.path)}
            proposals={model.choices[field.path] ?? []}
            placeholder={
              field.path === 'name'
                ? (model.preview?.name ?? '')
                : field.standardText
            }
            trans={trans}
            onChange={text => model.set({ [field.path]: text })}
          />
          {field.path === 'environment.secrets' && (
            <SecretValues model={model} trans={trans} />
          )}
        </React.Fragment>
      ))}
    </div>
  );
}

/** Fields by the first part of their paths; those with one part only come first. */
function groupsOf(fields: readonly IField[]): [string, IField[]][] {
  const groups = new Map<string, IField[]>([['', []]]);
  for (const field of fields) {
    const [first, ...rest] = field.path.split('.');
    const group = rest.length === 0 ? '' : first;
    groups.set(group, [...(groups.get(group) ?? []), field]);
  }
  return [...groups];
}
