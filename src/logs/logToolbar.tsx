import { TranslationBundle } from '@jupyterlab/translation';
import { downloadIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { RanksField } from './ranksField';
import { SearchField } from './searchField';
import { LogViewModel } from './viewModel';

/**
 * What can be done with a log.
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

  protected override render(): JSX.Element {
    const props = { model: this._model, trans: this._trans };
    return (
      <>
        <FollowButton {...props} />
        {!this._isCompact && <AttemptField {...props} />}
        <RanksField {...props} />
        {!this._isCompact && (
          <>
            <RankButtons {...props} />
            <LookButtons {...props} />
            {this._model.client.rawUrl && <DownloadLink {...props} />}
          </>
        )}
        <SearchField {...props} />
      </>
    );
  }

  private readonly _model: LogViewModel;
  private readonly _trans: TranslationBundle;
  private readonly _isCompact: boolean;
}

interface IProps {
  model: LogViewModel;
  trans: TranslationBundle;
}

function FollowButton({ model, trans }: IProps): JSX.Element | null {
  const { feed } = model;
  if (model.removed) {
    return null;
  }
  if (feed.over) {
    // Nothing comes any more that could be followed.
    return (
      <button
        type="button"
        className="jp-HyperPod-button"
        title={trans.__('Jump to the last lines')}
        onClick={() => void feed.follow()}
      >
        {trans.__('Jump to end')}
      </button>
    );
  }
  return (
    <button
      type="button"
      className="jp-HyperPod-button"
      title={
        feed.following
          ? trans.__('Stop following new lines')
          : trans.__('Follow new lines')
      }
      onClick={() => (feed.following ? feed.pause() : void feed.follow())}
    >
      {feed.following ? trans.__('Pause') : trans.__('Follow')}
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

function RankButtons({ model, trans }: IProps): JSX.Element {
  return (
    <>
      {model.hasRanks && (
        <button
          type="button"
          className="jp-HyperPod-button"
          aria-pressed={model.folds}
          title={trans.__('Show identical lines of several ranks once')}
          onClick={() => (model.folds = !model.folds)}
        >
          {trans.__('Fold')}
        </button>
      )}
      {model.hasNodeLogs && (
        <button
          type="button"
          className="jp-HyperPod-button"
          aria-pressed={model.showsNodeLogs}
          title={trans.__('Show node output: setup and launcher')}
          onClick={() => (model.showsNodeLogs = !model.showsNodeLogs)}
        >
          {trans.__('Node logs')}
        </button>
      )}
    </>
  );
}

function LookButtons({ model, trans }: IProps): JSX.Element {
  return (
    <>
      <button
        type="button"
        className="jp-HyperPod-button"
        aria-pressed={model.wraps}
        title={trans.__('Wrap long lines')}
        onClick={() => (model.wraps = !model.wraps)}
      >
        {trans.__('Wrap')}
      </button>
      <button
        type="button"
        className="jp-HyperPod-button"
        aria-pressed={model.showsTime}
        title={trans.__('Show timestamps')}
        onClick={() => (model.showsTime = !model.showsTime)}
      >
        {trans.__('Time')}
      </button>
    </>
  );
}

function DownloadLink({ model, trans }: IProps): JSX.Element {
  const url = model.rawUrl;
  const title = url
    ? trans.__('Download this log')
    : trans.__('Select one rank to download its log');
  return (
    <a
      className="jp-HyperPod-button"
      role="button"
      href={url ?? undefined}
      download
      aria-disabled={url === null}
      aria-label={title}
      title={title}
    >
      <downloadIcon.react tag="span" elementSize="normal" />
    </a>
  );
}
