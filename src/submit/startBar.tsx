import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SubmitModel } from './model';
import { PresetBar } from './presetBar';

/**
 * What runs, where, and with which settings to begin with.
 */
export function StartBar(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const id = React.useId();
  return (
    <>
      <Which model={model} trans={trans} />
      <div className="jp-HyperPod-FieldRows">
        <div className="jp-HyperPod-FieldRow">
          <label htmlFor={id}>{trans.__('Cluster')}</label>
          <select
            id={id}
            className="jp-HyperPod-select"
            data-field="cluster"
            value={model.draft.cluster ?? ''}
            onChange={event => model.setCluster(event.target.value)}
          >
            {model.clusters.map(({ name, orchestrator, state }) => (
              <option key={name} value={name}>
                {state === 'down'
                  ? trans.__('%1 (%2, does not respond)', name, orchestrator)
                  : trans.__('%1 (%2)', name, orchestrator)}
              </option>
            ))}
          </select>
        </div>
        <PresetBar model={model} trans={trans} />
        <label className="jp-HyperPod-check">
          <input
            type="checkbox"
            checked={model.draft.smoke}
            onChange={event => model.choose({ smoke: event.target.checked })}
          />
          {trans.__('Smoke test: 1 node, 2 minutes')}
        </label>
      </div>
    </>
  );
}

/** The selected cells or all of the notebook. */
function Which(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  const { cellIds, cloneOf, label } = model.source;
  const id = React.useId();
  if (cloneOf !== null) {
    return <p>{trans.__('Code of run %1 as submitted', cloneOf)}</p>;
  }
  if (cellIds === null) {
    return <p>{label}</p>;
  }
  const choice = (whole: boolean, words: string) => (
    <label className="jp-HyperPod-check">
      <input
        type="radio"
        name={id}
        checked={model.draft.whole === whole}
        onChange={() => model.choose({ whole })}
      />
      {words}
    </label>
  );
  return (
    <fieldset className="jp-HyperPod-Which">
      <legend>{label}</legend>
      {choice(false, cellWords(model, trans))}
      {choice(true, trans.__('Whole notebook'))}
    </fieldset>
  );
}

function cellWords(model: SubmitModel, trans: TranslationBundle): string {
  const ids = model.source.cellIds ?? [];
  const cells = model.source.view?.().cells ?? [];
  const numbers = cells
    .filter(cell => ids.includes(cell.id))
    .map(cell => cell.number);
  return numbers.length === 1
    ? trans.__('Cell %1', numbers[0])
    : trans.__('Cells %1', numbers.join(', '));
}
