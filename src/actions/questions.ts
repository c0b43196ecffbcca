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

/** Ask for a new time limit or queue, as far as they can be changed there; null when nothing is to be changed. */
export async function askForChange(
  names: string,
  fields: readonly ChangeField[],
  queues: Promise<readonly string[]>,
  trans: TranslationBundle
): Promise<IChange | null> {
  const body = new ChangeFields(names, fields, trans);
  void queues.then(found => body.propose(found)).catch(() => undefined);
  const answer = await showDialog({
    title: titleOf(fields, trans),
    body,
    focusNodeSelector: 'input',
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
 * Fields for what can be changed; what stays empty is left as it is.
 */
export class ChangeFields
  extends Widget
  implements Dialog.IBodyWidget<IChange>
{
  constructor(
    names: string,
    fields: readonly ChangeField[],
    trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-HyperPod-ChangeFields');
    const about = document.createElement('p');
    about.textContent = names;
    const hint = document.createElement('p');
    hint.textContent = hintOf(fields, trans);
    this._queues.id = `jp-HyperPod-queues-${ChangeFields._count++}`;
    this._queue.setAttribute('list', this._queues.id);
    this._limit.placeholder = EXAMPLE;
    const inputs: Readonly<Record<ChangeField, () => HTMLElement>> = {
      time_limit: () => field(trans.__('Time limit'), this._limit),
      queue: () => field(trans.__('Queue'), this._queue)
    };
    this.node.append(
      about,
      ...fields.map(name => inputs[name]()),
      this._queues,
      hint
    );
  }

  /** Offer the names of queues. */
  propose(queues: readonly string[]): void {
    this._queues.replaceChildren(...queues.map(name => new Option(name, name)));
  }

  getValue(): IChange {
    return {
      time_limit: this._limit.value.trim() || null,
      queue: this._queue.value.trim() || null
    };
  }

  private static _count = 0;
  private readonly _limit = document.createElement('input');
  private readonly _queue = document.createElement('input');
  private readonly _queues = document.createElement('datalist');
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
  trans: TranslationBundle
): string {
  const words: Readonly<Record<ChangeField, string>> = {
    time_limit: trans.__(
      'The limit counts from the start. For running jobs you can only lower it.'
    ),
    queue: trans.__('Only waiting jobs can move to another queue.')
  };
  return [
    trans.__('Empty fields keep their value.'),
    ...fields.map(name => words[name])
  ].join(' ');
}

function field(text: string, input: HTMLInputElement): HTMLElement {
  const label = document.createElement('label');
  const words = document.createElement('span');
  words.textContent = text;
  input.className = 'jp-HyperPod-input';
  label.append(words, input);
  return label;
}
