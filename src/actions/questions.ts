import { Dialog, showDialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { ChangeField, IChange } from './kinds';

/** What one types is the same in all languages. */
const EXAMPLE = '2h';

/** Ask whether what runs may be ended, to be begun again later. */
export async function mayRequeue(
  names: string,
  trans: TranslationBundle
): Promise<boolean> {
  const answer = await showDialog({
    title: trans.__('Requeue?'),
    body: trans.__(
      '%1: running work stops now. It restarts from the beginning or the last checkpoint when the scheduler starts it again.',
      names
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Let it run') }),
      Dialog.warnButton({ label: trans.__('Requeue') })
    ]
  });
  return answer.button.accept;
}

/** Ask whether scripts in the outputs of another user's run may run with this user's rights. */
export async function mayShow(
  owner: string,
  trans: TranslationBundle
): Promise<boolean> {
  const answer = await showDialog({
    title: trans.__('Run %1’s scripts?', owner),
    body: trans.__(
      'This run belongs to %1. Scripts in its outputs can do what you can do in JupyterLab.',
      owner
    ),
    buttons: [
      Dialog.cancelButton(),
      Dialog.warnButton({
        label: trans.__('Run %1’s scripts', owner)
      })
    ]
  });
  return answer.button.accept;
}

/** What a run or job has now, as one would type it; empty where that is not known, or where there are several. */
export type ICurrent = Readonly<Record<ChangeField, string>>;

const UNKNOWN: ICurrent = { time_limit: '', queue: '' };

/** A time limit as one types it: 90m, 2h. */
export function limitText(seconds: number | null): string {
  if (seconds === null) {
    return '';
  }
  if (seconds % 3600 === 0) {
    return `${seconds / 3600}h`;
  }
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}

/** Ask for a new time limit or queue, as far as they can be changed there; null when nothing is to be changed. */
export async function askForChange(
  names: string,
  fields: readonly ChangeField[],
  queues: Promise<readonly string[]>,
  trans: TranslationBundle,
  current: ICurrent = UNKNOWN
): Promise<IChange | null> {
  const body = new ChangeFields(names, fields, trans, current);
  void queues.then(found => body.propose(found)).catch(() => undefined);
  const answer = await showDialog({
    title: titleOf(fields, trans),
    body,
    focusNodeSelector: 'input, select',
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Change') })
    ]
  });
  const change = answer.button.accept ? answer.value : null;
  return change && (change.time_limit !== null || change.queue !== null)
    ? change
    : null;
}

/**
 * Fields for what can be changed, with what is so now; what is not changed is left as it is.
 */
export class ChangeFields
  extends Widget
  implements Dialog.IBodyWidget<IChange>
{
  constructor(
    names: string,
    fields: readonly ChangeField[],
    trans: TranslationBundle,
    private readonly _current: ICurrent = UNKNOWN
  ) {
    super();
    this.addClass('jp-HyperPod-ChangeFields');
    const about = document.createElement('p');
    about.textContent = names;
    const hint = document.createElement('p');
    const isKnown = fields.some(name => _current[name] !== '');
    hint.textContent = hintOf(fields, isKnown, trans);
    this._limit.placeholder = EXAMPLE;
    this._limit.value = _current.time_limit;
    this._limit.className = 'jp-HyperPod-input';
    this._queue.className = 'jp-HyperPod-select';
    const stays = _current.queue || trans.__('unchanged');
    this._queue.append(new Option(stays, _current.queue));
    const inputs: Readonly<Record<ChangeField, () => HTMLElement>> = {
      time_limit: () => field(trans.__('Time limit'), this._limit),
      queue: () => field(trans.__('Queue'), this._queue)
    };
    this.node.append(about, ...fields.map(name => inputs[name]()), hint);
  }

  /** Offer the names of queues. */
  propose(queues: readonly string[]): void {
    const others = queues.filter(name => name !== this._current.queue);
    this._queue.append(...others.map(name => new Option(name, name)));
  }

  getValue(): IChange {
    const changed = (name: ChangeField, value: string) =>
      value === '' || value === this._current[name] ? null : value;
    return {
      time_limit: changed('time_limit', this._limit.value.trim()),
      queue: changed('queue', this._queue.value)
    };
  }

  private readonly _limit = document.createElement('input');
  private readonly _queue = document.createElement('select');
}

function titleOf(
  fields: readonly ChangeField[],
  trans: TranslationBundle
): string {
  if (fields.length > 1) {
    return trans.__('Change the time limit or the queue');
  }
  return fields[0] === 'queue'
    ? trans.__('Change the queue')
    : trans.__('Change the time limit');
}

function hintOf(
  fields: readonly ChangeField[],
  isKnown: boolean,
  trans: TranslationBundle
): string {
  const words: Readonly<Record<ChangeField, string>> = {
    time_limit: trans.__(
      'The limit counts from the start. For running jobs you can only lower it.'
    ),
    queue: trans.__('Only waiting jobs can move to another queue.')
  };
  return [
    isKnown ? '' : trans.__('Empty fields keep their value.'),
    ...fields.map(name => words[name])
  ]
    .filter(Boolean)
    .join(' ');
}

function field(text: string, input: HTMLElement): HTMLElement {
  const label = document.createElement('label');
  const words = document.createElement('span');
  words.textContent = text;
  label.append(words, input);
  return label;
}
