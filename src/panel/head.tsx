import { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  ellipsesIcon,
  ReactWidget,
  refreshIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { below, openMenu } from '../components/menu';
import type { IPanelActions } from './actions';

/**
 * The panel's first line: its name, and what does not belong to a row.
 */
export class PanelHead extends ReactWidget {
  constructor(
    private readonly _actions: IPanelActions,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-HyperPod-PanelHead');
  }

  protected override render(): JSX.Element {
    return <HeadContent actions={this._actions} trans={this._trans} />;
  }
}

function HeadContent(props: {
  actions: IPanelActions;
  trans: TranslationBundle;
}): JSX.Element {
  const { actions, trans } = props;
  const { newRun } = actions;
  const [isBusy, setBusy] = React.useState(false);
  const refresh = async () => {
    setBusy(true);
    await actions.refresh();
    setBusy(false);
  };
  const refreshLabel = trans.__('Refresh clusters and runs');
  const moreLabel = trans.__('More');
  return (
    <>
      <h2>{trans.__('HyperPod')}</h2>
      {newRun && (
        <button
          type="button"
          className="jp-HyperPod-button jp-mod-accept"
          onClick={() => newRun(null)}
        >
          <addIcon.react tag="span" width="16px" height="16px" />
          {trans.__('New run')}
        </button>
      )}
      <button
        type="button"
        className="jp-HyperPod-IconButton"
        title={refreshLabel}
        aria-label={refreshLabel}
        aria-busy={isBusy}
        onClick={() => void refresh()}
      >
        <refreshIcon.react tag="span" width="16px" height="16px" />
      </button>
      <button
        type="button"
        className="jp-HyperPod-IconButton"
        title={moreLabel}
        aria-label={moreLabel}
        aria-haspopup="menu"
        onClick={event => openMenu(actions.more(), below(event.currentTarget))}
      >
        <ellipsesIcon.react tag="span" width="16px" height="16px" />
      </button>
    </>
  );
}
