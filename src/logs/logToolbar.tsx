import { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { LogMenu } from './logMenu';
import { LogLevel } from './pattern';
import { RanksChip } from './ranksChip';
import { SearchField } from './searchField';
import { LogViewModel } from './viewModel';

/**
 * What can be done with a log, in one row.
 *
 * Controls that appear later, such as ranks and attempts, come last: nothing moves away under the mouse.
 */
export class LogToolbar extends SignalWidget {
  constructor(
    model: LogViewModel,
    trans: TranslationBundle,
    isCompact = false
  ) {
    super(model.changed);
    this.addClass('jp-HyperPod-LogToolbar');
    this.node.setAttribute('role', 'toolbar');
    this.node.setAttribute('aria-label', trans.__('Log'));
    this._model = model;
    this._trans = trans;
    this._isCompact = isCompact;
  }

  /** Give the search's field the focus, and select what is in it. */
  focusSearch(): void {
    const field = this.node.querySelector<HTMLInputElement>('[type="search"]');
    field?.focus();
    field?.select();
  }

  protected override onBeforeDetach(msg: Message): void {
    this._menu?.dispose();
    this._menu = null;
    super.onBeforeDetach(msg);
  }

  protected override render(): JSX.Element {
    const props = { model: this._model, trans: this._trans };
    const more = this._trans.__('More log options');
    return (
      <>
        <SearchField {...props} />
        {!this._isCompact && this._model.client.filters && (
          <LevelChips {...props} />
        )}
        <RanksChip {...props} />
        {!this._isCompact && <AttemptField {...props} />}
        <span className="jp-HyperPod-LogToolbar-space" />
        <FollowButton {...props} />
        <button
          type="button"
          className="jp-HyperPod-IconButton"
          aria-haspopup="menu"
          aria-label={more}
          title={more}
          onClick={event => this._openMenu(event.currentTarget)}
        >
          <ellipsesIcon.react tag="span" elementSize="normal" />
        </button>
      </>
    );
  }

  private _openMenu(anchor: HTMLElement): void {
    this._menu?.dispose();
    this._menu = new LogMenu(this._model, this._trans);
    this._menu.open(anchor);
  }

  private readonly _model: LogViewModel;
  private readonly _trans: TranslationBundle;
  private readonly _isCompact: boolean;
  private _menu: LogMenu | null = null;
}

interface IProps {
  model: LogViewModel;
  trans: TranslationBundle;
}

function LevelChips({ model, trans }: IProps): JSX.Element {
  return (
    <>
      <LevelChip
        model={model}
        level="error"
        label={trans.__('Errors')}
        title={trans.__('Show only lines with errors')}
      />
      <LevelChip
        model={model}
        level="warning"
        label={trans.__('Warnings')}
        title={trans.__('Show only lines with warnings')}
      />
    </>
  );
}

function LevelChip(props: {
  model: LogViewModel;
  level: LogLevel;
  label: string;
  title: string;
}): JSX.Element {
  const { label, level, model, title } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-Chip"
      data-level={level}
      aria-pressed={model.levels.has(level)}
      title={title}
      onClick={() => model.toggleLevel(level)}
    >
      {label}
    </button>
  );
}

function FollowButton({ model, trans }: IProps): JSX.Element | null {
  const { feed } = model;
  if (model.removed || (feed.over && (feed.following || model.endSeen))) {
    return null;
  }
  const [label, title] = feed.over
    ? [trans.__('Jump to end'), trans.__('Jump to the last lines')]
    : feed.following
      ? [trans.__('Pause'), trans.__('Stop following new lines')]
      : [trans.__('Follow'), trans.__('Follow new lines')];
  return (
    <button
      type="button"
      className="jp-HyperPod-Chip"
      title={title}
      onClick={() =>
        feed.following && !feed.over ? feed.pause() : void feed.follow()
      }
    >
      {label}
    </button>
  );
}

function AttemptField({ model, trans }: IProps): JSX.Element | null {
  if (model.attempts.length < 2) {
    return null;
  }
  return (
    <select
      className="jp-HyperPod-select"
      aria-label={trans.__('Attempt')}
      value={model.attempt ?? ''}
      onChange={event => {
        const { value } = event.target;
        model.chooseAttempt(value === '' ? undefined : Number(value));
      }}
    >
      <option value="">{trans.__('All attempts')}</option>
      {model.attempts.map(({ number }) => (
        <option key={number} value={number}>
          {trans.__('Attempt %1', number)}
        </option>
      ))}
    </select>
  );
}
