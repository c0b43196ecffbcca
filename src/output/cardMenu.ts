import { TranslationBundle } from '@jupyterlab/translation';
import { MenuSvg } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { IDisposable } from '@lumino/disposable';

import type { IRun } from '../runs/types';
import type { ICardActions } from './runCard';

/** These live in the card's own registry: they are about this card, which no command's argument could name. */
const FREEZE = 'hyperpod:freeze-card-log';
const NOTEBOOK = 'hyperpod:open-card-notebook';
const COPY = 'hyperpod:copy-card-command';

/** Without arguments. */
const NOTHING = {
  args: { type: 'object', properties: {}, additionalProperties: false }
} as const;

/**
 * The menu of a run's card.
 */
export class CardMenu implements IDisposable {
  constructor(options: CardMenu.IOptions) {
    const { actions, run, trans } = options;
    const commands = new CommandRegistry();
    commands.addCommand(FREEZE, {
      label: trans.__('Save Log in Output'),
      caption: trans.__(
        'Add the last lines of the log to this cell’s output, so that they are saved with the notebook'
      ),
      describedBy: NOTHING,
      execute: () => actions.freeze(run())
    });
    commands.addCommand(NOTEBOOK, {
      label: trans.__('Open Executed Notebook'),
      caption: trans.__(
        'Save the cells with their outputs so far, and open them'
      ),
      describedBy: NOTHING,
      isVisible: () => run().notebook !== null,
      execute: () => actions.openExecuted(run())
    });
    commands.addCommand(COPY, {
      label: trans.__('Copy Command'),
      caption: trans.__('Copy the command that shows this log in a terminal'),
      describedBy: NOTHING,
      execute: () => actions.copyCommand(run())
    });
    this._menu = new MenuSvg({ commands });
    this._menu.addItem({ command: FREEZE });
    this._menu.addItem({ command: COPY });
    this._menu.addItem({ command: NOTEBOOK });
  }

  get isDisposed(): boolean {
    return this._menu.isDisposed;
  }

  dispose(): void {
    this._menu.dispose();
  }

  /** Open below an element, which has the focus again at the end. */
  open(anchor: HTMLElement): void {
    const { bottom, left } = anchor.getBoundingClientRect();
    this._menu.aboutToClose.connect(() => anchor.focus());
    this._menu.open(left, bottom);
  }

  private readonly _menu: MenuSvg;
}

export namespace CardMenu {
  export interface IOptions {
    actions: ICardActions;
    /** The run as it is known now. */
    run: () => IRun;
    trans: TranslationBundle;
  }
}
