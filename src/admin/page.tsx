import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { hintText } from '../components/hint';
import { Notes } from '../components/notes';
import { WatchingPage } from '../components/watchingWidget';
import { askedOf, firstDraft, IDraft, isOfOther, withThere } from './draft';
import { WiringForm } from './form';
import { AdminModel } from './model';
import { PlanView } from './planView';
import { IAsked, IChoices, IPlan, isOpen, IWork } from './types';
import { useThere } from './useThere';

/**
 * For admins: a file system and the people of a Studio domain. Nothing is read while it is hidden.
 */
export class AdminPage extends WatchingPage<AdminModel> {
  constructor(options: AdminPage.IOptions) {
    const { model, trans } = options;
    super(model, trans.__('HyperPod Admin'));
    this.addClass('jp-HyperPod-Admin');
    this._options = options;
  }

  protected override render(): JSX.Element {
    return <Admin {...this._options} isShown={this._isShown} />;
  }

  private readonly _isShown = () => this.isVisible && !document.hidden;
  private readonly _options: AdminPage.IOptions;
}

export namespace AdminPage {
  export interface IOptions {
    model: AdminModel;
    /** Ask whether a plan is to be applied. */
    confirm: (asked: IAsked, plan: IPlan) => Promise<boolean>;
    trans: TranslationBundle;
  }
}

type IProps = AdminPage.IOptions & { isShown: () => boolean };

function Admin(props: IProps): JSX.Element {
  const { model, trans } = props;
  const { choices, choicesError, error, rights, value: work } = model;
  return (
    <>
      <h1>{trans.__('HyperPod Admin')}</h1>
      <p>
        {trans.__(
          'Mounts the cluster’s file system for the users of a SageMaker Studio domain. You preview the changes first. No files are moved or deleted.'
        )}
      </p>
      {!rights.offered && <Refusal {...props} />}
      {choicesError && (
        <ErrorMessage
          error={choicesError}
          trans={trans}
          retry={() => model.refresh()}
        />
      )}
      {error && (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => model.refresh()}
        />
      )}
      {rights.offered &&
        (choices && work ? (
          <Wiring {...props} choices={choices} work={work} />
        ) : (
          !choicesError &&
          !error && (
            <p className="jp-HyperPod-Message" role="status">
              {trans.__('Loading…')}
            </p>
          )
        ))}
    </>
  );
}

/** Why the page is not for this user. */
function Refusal({ model, trans }: IProps): JSX.Element {
  const { reason } = model.rights;
  return reason === null ? (
    <p className="jp-HyperPod-Message" role="status">
      {trans.__('Loading…')}
    </p>
  ) : (
    <Notes
      notes={[
        trans.__('This page is for administrators of the Studio domain.'),
        reason.message,
        reason.hint === null ? '' : hintText(reason.hint, trans)
      ]}
    />
  );
}

function Wiring(
  props: IProps & { choices: IChoices; work: IWork }
): JSX.Element {
  const { choices, confirm, isShown, model, trans, work } = props;
  const [chosen, choose] = React.useState<IDraft>(() =>
    firstDraft(work, choices)
  );
  const there = useThere(model.client, choices, chosen, work);
  const draft = withThere(chosen, there);
  const asked = askedFor(work);
  const isOther = asked !== null && isOfOther(asked, draft);
  const plan = (back: boolean) => {
    choose(draft);
    void model.plan(askedOf(draft, back));
  };
  const apply = async (shown: IWork, plan: IPlan) => {
    if (shown.asked && (await confirm(shown.asked, plan))) {
      await model.apply(plan.id);
    }
  };
  return (
    <>
      <WiringForm
        draft={draft}
        choices={choices}
        there={there}
        change={part => choose({ ...chosen, ...part })}
        isBusy={model.isBusy}
        isNext={!isOpen(work) || isOther}
        plan={() => plan(false)}
        takeBack={() => plan(true)}
        trans={trans}
      />
      {asked !== null && (
        <PlanView
          model={model}
          work={work}
          isOther={isOther}
          apply={(shown, plan) => void apply(shown, plan)}
          isShown={isShown}
          trans={trans}
        />
      )}
    </>
  );
}

/** What was asked for, with the file system that was found where a cluster was named. */
function askedFor({ asked, plan }: IWork): IAsked | null {
  return (
    asked && {
      ...asked,
      file_system: asked.file_system ?? plan?.file_system ?? null
    }
  );
}
