import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IPreset, presetKey } from './memory';
import { SubmitModel } from './model';

const STANDARD = 'standard';
const LAST = 'last';
const GIVEN = 'given';
const DRAFT = 'draft';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
}

/**
 * Settings to begin with, one click each: the last ones, standard ones, presets. A smoke test goes over any of them.
 */
export function PresetBar({ model, trans }: IProps): JSX.Element {
  const [chosen, setChosen] = React.useState(beginning(model));
  const preset = model.presets.find(one => presetKey(one) === chosen);
  const choose = (value: string) => {
    setChosen(value);
    if (value === DRAFT && model.draftBefore) {
      model.resume(model.draftBefore, null);
      return;
    }
    const found = model.presets.find(one => presetKey(one) === value);
    const start = { [LAST]: model.last, [GIVEN]: model.start }[value];
    model.begin(start ?? found ?? null);
  };
  return (
    <div className="jp-HyperPod-PresetBar">
      <span
        role="group"
        aria-label={trans.__('Presets')}
        className="jp-HyperPod-Chips"
      >
        {starts(model, trans).map(({ name, words }) => (
          <button
            key={name}
            type="button"
            className="jp-HyperPod-Choice"
            aria-pressed={name === chosen}
            onClick={() => choose(name)}
          >
            {words}
          </button>
        ))}
        <button
          type="button"
          className="jp-HyperPod-Choice"
          aria-pressed={model.draft.smoke}
          title={trans.__('Run on 1 node, for 2 minutes at most')}
          onClick={() => model.choose({ smoke: !model.draft.smoke })}
        >
          {trans.__('Smoke test')}
        </button>
      </span>
      {preset && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => {
            setChosen(STANDARD);
            void model.removePreset(preset);
          }}
        >
          {trans.__('Remove preset')}
        </button>
      )}
      <SavePreset
        model={model}
        trans={trans}
        saved={saved => setChosen(presetKey(saved))}
      />
    </div>
  );
}

/** Where the form's first settings come from. */
function beginning(model: SubmitModel): string {
  if (model.draftBefore) {
    return DRAFT;
  }
  if (model.start) {
    return GIVEN;
  }
  return model.last ? LAST : STANDARD;
}

/** What the form can begin with. */
function starts(
  model: SubmitModel,
  trans: TranslationBundle
): readonly { readonly name: string; readonly words: string }[] {
  const given =
    model.source.cloneOf === null
      ? trans.__('As specified')
      : trans.__('From this run');
  return [
    ...(model.draftBefore ? [{ name: DRAFT, words: trans.__('Draft') }] : []),
    ...(model.start ? [{ name: GIVEN, words: given }] : []),
    ...(model.last ? [{ name: LAST, words: trans.__('Last run') }] : []),
    { name: STANDARD, words: trans.__('Defaults') },
    ...model.presets.map(preset => ({
      name: presetKey(preset),
      words: presetText(preset, model.presets)
    }))
  ];
}

/** A preset's name, with its folder where another one has the same name. */
function presetText(preset: IPreset, all: readonly IPreset[]): string {
  const { name, project } = preset;
  const isAlone = all.filter(one => one.name === name).length === 1;
  return isAlone ? name : `${name} (${project || '/'})`;
}

function SavePreset(
  props: IProps & { saved: (preset: IPreset) => void }
): JSX.Element {
  const { model, saved, trans } = props;
  const [name, setName] = React.useState<string | null>(null);
  const input = React.useRef<HTMLInputElement>(null);
  const isOpen = name !== null;
  React.useEffect(() => {
    if (isOpen) {
      input.current?.focus();
    }
  }, [isOpen]);
  if (name === null) {
    return (
      <button
        type="button"
        className="jp-HyperPod-link jp-HyperPod-SavePreset"
        onClick={() => setName('')}
      >
        {trans.__('Save as preset…')}
      </button>
    );
  }
  const save = async () => {
    if (name.trim() !== '') {
      saved(await model.savePreset(name.trim()));
      setName(null);
    }
  };
  return (
    <span className="jp-HyperPod-SavePreset">
      <input
        ref={input}
        className="jp-HyperPod-input"
        aria-label={trans.__('Preset name')}
        placeholder={trans.__('Preset name')}
        data-own-enter
        value={name}
        onChange={event => setName(event.target.value)}
        onKeyDown={event => event.key === 'Enter' && void save()}
      />
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={name.trim() === ''}
        onClick={() => void save()}
      >
        {trans.__('Save')}
      </button>
      <button
        type="button"
        className="jp-HyperPod-link"
        onClick={() => setName(null)}
      >
        {trans.__('Discard')}
      </button>
    </span>
  );
}
