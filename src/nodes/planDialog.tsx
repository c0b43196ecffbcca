import { Dialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { INodePlan, INodeToActOn } from './types';
import { namesText, nodeActionOn, whyText } from './words';

/** The longest reason that the server takes. */
const LONGEST_REASON = 200;

/** Something that is no space. */
const SAYS_SOMETHING = '.*\\S.*';

/**
 * What the user wants done: the nodes that were shown, by names that mean no others by now.
 */
export interface IConfirmed {
  readonly nodes: readonly string[];
  readonly reason?: string;
}

/**
 * Show the consequences for nodes, and ask for confirmation; null when the user declines.
 *
 * @param reason - why, with drain, as far as it is known before
 */
export async function confirmPlan(
  plan: INodePlan,
  trans: TranslationBundle,
  reason = ''
): Promise<IConfirmed | null> {
  const possible = plan.nodes.filter(node => node.refusal === null);
  const body = new PlanBody(plan, reason, trans);
  const drains = plan.action === 'drain';
  const label = nodeActionOn(plan.action, possible.length, trans);
  const leave = Dialog.cancelButton({
    label: possible.length > 0 ? trans.__('Cancel') : trans.__('Close')
  });
  const confirm = drains
    ? Dialog.okButton({ label })
    : Dialog.warnButton({ label });
  const answer = await new Dialog<string>({
    // Where it can be done to none, what was asked for.
    title: nodeActionOn(
      plan.action,
      possible.length || plan.nodes.length,
      trans
    ),
    body,
    buttons: possible.length > 0 ? [leave, confirm] : [leave],
    // What can't be taken back is not done by a key that was pressed too often.
    defaultButton: drains && possible.length > 0 ? 1 : 0,
    focusNodeSelector: drains ? 'input' : undefined
  }).launch();
  if (!answer.button.accept) {
    return null;
  }
  return {
    nodes: possible.map(node => node.instance ?? node.node ?? node.name),
    ...(drains && { reason: answer.value ?? '' })
  };
}

/**
 * A plan, and with drain a field for the reason.
 */
class PlanBody extends ReactWidget implements Dialog.IBodyWidget<string> {
  constructor(plan: INodePlan, reason: string, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-NodePlan');
    this._plan = plan;
    this._reason = reason;
    this._trans = trans;
  }

  getValue(): string {
    return this._reason.trim();
  }

  protected override render(): JSX.Element {
    const plan = this._plan;
    const trans = this._trans;
    const asks =
      plan.action === 'drain' && plan.nodes.some(node => node.refusal === null);
    return (
      <>
        {plan.effects.map(effect => (
          <p key={effect}>{effect}</p>
        ))}
        {plan.notes.map(note => (
          <p key={note} className="jp-HyperPod-Table-note" role="note">
            {note}
          </p>
        ))}
        <PlannedNodes nodes={plan.nodes} trans={trans} />
        {asks && (
          <ReasonField
            reason={this._reason}
            changed={reason => (this._reason = reason)}
            trans={trans}
          />
        )}
      </>
    );
  }

  private readonly _plan: INodePlan;
  private readonly _trans: TranslationBundle;
  private _reason: string;
}

/** Each node with the consequences for it and its jobs, or why it is left out. */
function PlannedNodes(props: {
  nodes: readonly INodeToActOn[];
  trans: TranslationBundle;
}): JSX.Element {
  const { nodes, trans } = props;
  return (
    <ul
      className="jp-HyperPod-NodePlan-nodes"
      aria-label={trans.__('Effects on nodes')}
      // So that the keyboard can scroll it.
      tabIndex={0}
    >
      {nodes.map(node => (
        <li key={node.name}>
          <strong>{namesText(node)}</strong>
          {node.refusal ? (
            <p className="jp-mod-refused">
              {trans.__('Skipped: %1', whyText(node.refusal, trans))}
            </p>
          ) : (
            node.effects.map(effect => <p key={effect}>{effect}</p>)
          )}
        </li>
      ))}
    </ul>
  );
}

function ReasonField(props: {
  reason: string;
  changed: (reason: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { changed, reason, trans } = props;
  const input = React.useRef<HTMLInputElement>(null);
  // The dialog looks at what may be confirmed when something is typed, and at first nothing is.
  React.useEffect(() => {
    input.current?.dispatchEvent(new Event('input', { bubbles: true }));
  }, []);
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Reason (shown to others in the node table)')}
      <input
        ref={input}
        className="jp-HyperPod-input"
        required
        pattern={SAYS_SOMETHING}
        maxLength={LONGEST_REASON}
        defaultValue={reason}
        onChange={event => changed(event.target.value)}
      />
    </label>
  );
}
