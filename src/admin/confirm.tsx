import { Dialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IAsked, IPlan } from './types';
import { questionText } from './words';

/**
 * Ask for confirmation: what would change, and what sees the change only after a restart.
 */
export async function confirmApply(
  asked: IAsked,
  plan: IPlan,
  trans: TranslationBundle
): Promise<boolean> {
  const label =
    asked.mode === null ? trans.__('Remove') : trans.__('Apply changes');
  const confirm =
    asked.mode === null
      ? Dialog.warnButton({ label })
      : Dialog.okButton({ label });
  const answer = await new Dialog<unknown>({
    title: questionText(asked, trans),
    body: new PlanSummary(plan, asked, trans),
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), confirm],
    // A change for so many users must not happen by one Enter too many.
    defaultButton: 0
  }).launch();
  return answer.button.accept;
}

class PlanSummary extends ReactWidget {
  constructor(plan: IPlan, asked: IAsked, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-NodePlan');
    this._plan = plan;
    this._asked = asked;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    const { counts, restarts } = this._plan;
    const trans = this._trans;
    return (
      <>
        <p>
          {trans._n(
            'This makes %1 change.',
            'This makes %1 changes.',
            counts.to_do
          )}
        </p>
        {counts.waits + counts.blocked > 0 && (
          <p>
            {trans.__(
              'Skipped: %1 waiting, %2 blocked.',
              counts.waits,
              counts.blocked
            )}
          </p>
        )}
        <p>
          {this._asked.mode === null
            ? trans.__(
                'This removes only settings that were made here. Folders and files stay.'
              )
            : trans.__('No files are moved or deleted.')}
        </p>
        {restarts.length > 0 && (
          <>
            <p>{trans.__('Restart these apps to apply the change:')}</p>
            <ul
              className="jp-HyperPod-NodePlan-nodes"
              aria-label={trans.__('Apps to restart')}
              // So that the keyboard can scroll it.
              tabIndex={0}
            >
              {restarts.map(({ apps, target }) => (
                <li key={target}>{`${target}: ${apps.join(', ')}`}</li>
              ))}
            </ul>
          </>
        )}
      </>
    );
  }

  private readonly _plan: IPlan;
  private readonly _asked: IAsked;
  private readonly _trans: TranslationBundle;
}
