import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IPreset, presetKey } from './memory';
import { SubmitModel } from './model';

const STANDARD = 'standard';
const LAST = 'last';
const GIVEN = 'given';

/**
 * Settings to begin with: standard ones, the last ones, or a preset; and keeping some under a name.
 */
export function PresetBar(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const id = React.useId();
  const [chosen, setChosen] = React.useState(beginning(model));
  const preset = model.presets.find(one => presetKey(one) === chosen);
  const choose = (value: string) => {
    setChosen(value);
    const found = model.presets.find(one => presetKey(one) === value);
    const start = { [LAST]: model.last, [GIVEN]: model.start }[value];
    model.begin(start ?? found ?? null);
  };
  return (
    <>
      <div className="jp-HyperPod-FieldRow">
        <label htmlFor={id}>{trans.__('Settings')}</label>
        <span className="jp-HyperPod-Preset">
          <select
            id={id}
            className="jp-HyperPod-select"
            value={chosen}
            onChange={event => choose(event.target.value)}
          >
            <StartOptions model={model} trans={trans} />
          </select>
          {preset && (
            <RemovePreset
              trans={trans}
              remove={() => {
                setChosen(STANDARD);
                void model.removePreset(preset);
              }}
            />
          )}
        </span>
      </div>
      <SavePreset
        model={model}
        trans={trans}
        saved={saved => setChosen(presetKey(saved))}
      />
    </>
  );
}

/** Where the form's first settings come from. */
function beginning(model: SubmitModel): string {
  if (model.start) {
    return GIVEN;
  }
  return model.last ? LAST : STANDARD;
}

/** What the form can begin with. */
function StartOptions(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  return (
    <>
      <option value={STANDARD}>{trans.__('Default')}</option>
      {model.start && (
        <option value={GIVEN}>
          {model.source.cloneOf === null
            ? trans.__('As specified')
            : trans.__('From this run')}
        </option>
      )}
      {model.last && (
        <option value={LAST}>{trans.__('From the last run')}</option>
      )}
      {model.presets.map(preset => (
        <option key={presetKey(preset)} value={presetKey(preset)}>
          {presetText(preset, model.presets)}
        </option>
      ))}
    </>
  );
}

/** A preset's name, with its folder where another one has the same name. */
function presetText(preset: IPreset, all: readonly IPreset[]): string {
  const { name, project } = preset;
  const isAlone = all.filter(one => one.name === name).length === 1;
  return isAlone ? name : `${name} (${project || '/'})`;
}

function RemovePreset(props: {
  trans: TranslationBundle;
  remove: () => void;
}): JSX.Element {
  return (
    <button type="button" className="jp-HyperPod-button" onClick={props.remove}>
      {props.trans.__('Remove preset')}
    </button>
  );
}

function SavePreset(props: {
  model: SubmitModel;
  trans: TranslationBundle;
  saved: (preset: IPreset) => void;
}): JSX.Element {
  const { model, saved, trans } = props;
  const [name, setName] = React.useState('');
  const [open, setOpen] = React.useState(false);
  const save = async () => {
    saved(await model.savePreset(name.trim()));
    setName('');
    setOpen(false);
  };
  return (
    <details
      className="jp-HyperPod-SavePreset"
      open={open}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Save as preset')}</summary>
      <input
        className="jp-HyperPod-input"
        aria-label={trans.__('Preset name')}
        placeholder={trans.__('Preset name')}
        value={name}
        onChange={event => setName(event.target.value)}
      />
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={name.trim() === ''}
        onClick={() => void save()}
      >
        {trans.__('Save')}
      </button>
    </details>
  );
}
