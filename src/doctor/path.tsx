import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { StateIcon } from '../components/stateIcon';
import { IStage, Stage } from './types';
import { levelText, stageDetail, stageText } from './words';

/**
 * The path of a run from JupyterLab to the nodes, as a row of stages. Where it breaks is marked. Each stage is a button.
 */
export function Path(props: {
  stages: readonly IStage[];
  /** The stage that is checked now. */
  busy: Stage | null;
  /** The stage whose checks are shown; null: all. */
  chosen: Stage | null;
  choose: (stage: IStage) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { busy, choose, chosen, stages, trans } = props;
  return (
    <ol
      className="jp-HyperPod-Doctor-path"
      aria-label={trans.__('Path of a run')}
    >
      {stages.map(one => {
        const { broken, level, stage } = one;
        const isBusy = stage === busy;
        const look = isBusy ? 'running' : (level ?? 'none');
        return (
          <li key={stage} data-level={look} data-broken={broken}>
            <button
              type="button"
              aria-pressed={stage === chosen}
              onClick={() => choose(one)}
            >
              <span className="jp-HyperPod-Doctor-stop">
                {look !== 'none' && (
                  <StateIcon
                    state={look === 'unknown' ? 'not-checked' : look}
                    text={
                      isBusy ? trans.__('checking') : levelText(look, trans)
                    }
                    trans={trans}
                  />
                )}
              </span>
              <span className="jp-HyperPod-Doctor-stage">
                <strong>{stageText(stage, trans)}</strong>
                <span>{stageDetail(one, isBusy, trans)}</span>
              </span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
