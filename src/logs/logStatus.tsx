import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { LogFeed } from './feed';
import { formatRanks } from './ranks';
import { absentText } from './ranksChip';
import { LogViewModel } from './viewModel';

/**
 * One line on the state of the log, told to screen readers too.
 */
export class LogStatus extends SignalWidget {
  constructor(model: LogViewModel, trans: TranslationBundle) {
    super(model.changed);
    this.addClass('jp-HyperPod-LogStatus');
    this._model = model;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return <StatusLine model={this._model} trans={this._trans} />;
  }

  private readonly _model: LogViewModel;
  private readonly _trans: TranslationBundle;
}

interface IProps {
  model: LogViewModel;
  trans: TranslationBundle;
}

function StatusLine({ model, trans }: IProps): JSX.Element {
  const { error } = model.feed;
  return (
    <>
      <span role="status" aria-live="polite">
        {stateText(model, trans)}
      </span>
      {error && !model.removed && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => void model.feed.follow()}
        >
          {trans.__('Try again')}
        </button>
      )}
      {model.silent.length > 0 && !model.feed.over && !model.removed && (
        <span
          className="jp-HyperPod-LogStatus-silent"
          title={trans.__(
            'These ranks have written nothing recently, but others have'
          )}
        >
          {trans.__('Silent ranks: %1', formatRanks(model.silent))}
        </span>
      )}
    </>
  );
}

function stateText(model: LogViewModel, trans: TranslationBundle): string {
  const { feed, client } = model;
  if (model.removed) {
    return trans.__('The run was removed. Its log is no longer available.');
  }
  if (feed.error) {
    const { hint, message } = feed.error;
    return hint
      ? trans.__('%1 (%2)', message, hint)
      : trans.__('Cannot read the log: %1', message);
  }
  if (feed.loading) {
    return trans.__('Loading the log…');
  }
  if (!client.connected) {
    return trans.__(
      'Connection to the server lost. The log continues when it is back.'
    );
  }
  const absent = absentText(model, trans);
  if (absent !== null) {
    return absent;
  }
  if (feed.over) {
    return endText(feed, trans);
  }
  if (feed.window.length === 0) {
    return trans.__('No output yet.');
  }
  return feed.following
    ? trans.__('Following new lines.')
    : trans.__('Paused. Scroll to the end or press Follow for new lines.');
}

function endText(feed: LogFeed, trans: TranslationBundle): string {
  if (!feed.ended || !feed.window.atStart) {
    return trans.__('The run has ended.');
  }
  const { ranks, attempt, nodeLogs } = feed.request;
  if (ranks !== undefined || attempt !== undefined || nodeLogs !== undefined) {
    return trans.__('The run has ended. All selected lines are shown.');
  }
  return feed.window.length === 0
    ? trans.__('The run has ended without output.')
    : trans.__('The run has ended. The log is complete.');
}
