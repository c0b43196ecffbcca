import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { isOverruled } from './draft';
import { FieldInput } from './fieldInput';
import { FieldRow, helpOf, howTo } from './fieldRow';
import { IField } from './fields';
import { groupLabel, labelOf } from './labels';
import { groupsOf } from './layout';
import { isUsed } from './mainFields';
import { SubmitModel } from './model';
import { SecretValues } from './secretValues';
import { ToggleBar } from './toggleBar';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
  /** The groups that are unfolded. */
  readonly open: readonly string[];
  readonly setOpen: React.Dispatch<React.SetStateAction<readonly string[]>>;
}

/**
 * All other fields that the chosen cluster understands: in groups that unfold, and found by words.
 */
export function FieldList(props: IProps): JSX.Element {
  const { model, open, setOpen, trans } = props;
  const [words, setWords] = React.useState('');
  const id = React.useId();
  const groups = groupsOf(model.fields, field => isUsed(field, model));
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = groups
    .map(([group, fields]) => ({
      group,
      fields: fields.filter(field => isFound(field, wanted, trans))
    }))
    .filter(one =>
      wanted.length > 0 ? one.fields.length > 0 : open.includes(one.group)
    );
  const regionId = (group: string) => `${id}-${group}`;
  return (
    <section
      className="jp-HyperPod-MoreFields"
      aria-label={trans.__('More settings')}
    >
      <div className="jp-HyperPod-MoreFields-bar">
        <ToggleBar
          label={trans.__('More settings')}
          items={groups.map(([name, fields]) => ({
            name,
            label: titleOf(name, fields, model, trans)
          }))}
          open={found.map(one => one.group)}
          regionId={regionId}
          toggle={group =>
            setOpen(before =>
              before.includes(group)
                ? before.filter(one => one !== group)
                : [...before, group]
            )
          }
        />
        <input
          type="search"
          className="jp-HyperPod-input"
          aria-label={trans.__('Search settings')}
          placeholder={trans.__('Search settings')}
          data-search
          value={words}
          onChange={event => setWords(event.target.value)}
        />
      </div>
      {found.map(({ fields, group }) => (
        <fieldset
          key={group}
          id={regionId(group)}
          className="jp-HyperPod-FieldGroup"
        >
          <legend>{groupLabel(group, trans)}</legend>
          <Rows fields={fields} model={model} trans={trans} />
        </fieldset>
      ))}
      {wanted.length > 0 && found.length === 0 && (
        <p role="status">{trans.__('No setting matches “%1”.', words)}</p>
      )}
    </section>
  );
}

/** The fields of the groups that say something. */
export function usedFields(model: SubmitModel): readonly IField[] {
  return groupsOf(
    model.fields,
    field =>
      (model.texts[field.path] ?? '').trim() !== '' && isUsed(field, model)
  ).flatMap(([, fields]) => fields);
}

function isFound(
  field: IField,
  wanted: readonly string[],
  trans: TranslationBundle
): boolean {
  const text = [field.path, labelOf(field, trans), helpOf(field, trans)]
    .join(' ')
    .toLowerCase();
  return wanted.every(word => text.includes(word));
}

/** A group's name, with the number of its fields that say something. */
function titleOf(
  group: string,
  fields: readonly IField[],
  model: SubmitModel,
  trans: TranslationBundle
): string {
  const used = usedFields(model).filter(field => fields.includes(field)).length;
  const name = groupLabel(group, trans);
  return used > 0 ? trans.__('%1 (%2 set)', name, used) : name;
}

function Rows(props: {
  fields: readonly IField[];
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { fields, model, trans } = props;
  const { problems, texts } = model;
  return (
    <div className="jp-HyperPod-FieldGrid" data-columns="2">
      {fields.map(field => (
        <React.Fragment key={field.path}>
          <FieldRow
            field={field}
            problem={problems[field.path]}
            trans={trans}
            input={input => (
              <FieldInput
                {...input}
                field={field}
                text={texts[field.path] ?? ''}
                disabled={isOverruled(model.draft, field.path)}
                proposals={model.choices[field.path] ?? []}
                placeholder={field.standardText || howTo(field, trans)}
                trans={trans}
                onChange={text => model.set({ [field.path]: text })}
              />
            )}
          />
          {field.path === 'environment.secrets' && (
            <SecretValues model={model} trans={trans} />
          )}
        </React.Fragment>
      ))}
    </div>
  );
}
