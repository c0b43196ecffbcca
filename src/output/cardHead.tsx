import { TranslationBundle } from '@jupyterlab/translation';
import {
  ellipsesIcon,
  ReactWidget,
  UseSignal
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { RunPageModel } from '../runs/pageModel';
import { isEnded } from '../runs/types';
import type { ICardActions } from './runCard';

/**
 * The head of a run's card: its name, its state, what can be done.
 */
export class CardHead extends ReactWidget {
  constructor(options: CardHead.IOptions) {
    super();
    this.addClass('jp-HyperPod-RunCard-head');
    this._options = options;
  }

  protected override render(): JSX.Element {
    return (
      <UseSignal signal={this._options.model.changed}>
        {() => <HeadContent {...this._options} />}
      </UseSignal>
    );
  }

  private readonly _options: CardHead.IOptions;
}

export namespace CardHead {
  export interface IOptions {
    readonly model: RunPageModel;
    readonly actions: ICardActions;
    /** Opens the card's menu below an element. */
    readonly openMenu: (anchor: HTMLElement) => void;
    readonly trans: TranslationBundle;
  }
}

function HeadContent(props: CardHead.IOptions): JSX.Element | null {
  const { actions, model, openMenu, trans } = props;
  const { run } = model;
  if (!run) {
    return null;
  }
  return (
    <>
      <span className="jp-HyperPod-RunCard-name" title={run.run_id}>
        {run.name}
      </span>
      <span role="status" aria-live="polite">
        <StateChip state={run.state} reason={run.reason} trans={trans} />
      </span>
      {run.reason && (
        <span className="jp-HyperPod-RunCard-reason">{run.reason}</span>
      )}
      <span className="jp-HyperPod-RunCard-buttons">
        {run.own && !isEnded(run.state) && (
          <button
            type="button"
            className="jp-HyperPod-button jp-mod-warn"
            disabled={run.reason_code === 'cancelling'}
            onClick={() => actions.cancel(run)}
          >
            {trans.__('Cancel')}
          </button>
        )}
        <button
          type="button"
          className="jp-HyperPod-button"
          title={trans.__('Open the run page')}
          onClick={() => actions.open(run)}
        >
          {trans.__('Open')}
        </button>
        <button
          type="button"
          className="jp-HyperPod-button"
          aria-haspopup="menu"
          aria-label={trans.__('More actions')}
          title={trans.__('More actions')}
          onClick={event => openMenu(event.currentTarget)}
        >
          <ellipsesIcon.react tag="span" elementSize="normal" />
        </button>
      </span>
    </>
  );
}
