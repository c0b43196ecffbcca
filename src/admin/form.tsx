import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Notes } from '../components/notes';
import { IDraft } from './draft';
import { FolderFields } from './folderFields';
import { IChoices, IThere, Mode } from './types';
import { fileSystemText } from './words';

/** How ids begin. */
const DOMAIN_ID = 'd-…';
const FILE_SYSTEM_ID = 'fs-…';

interface IProps {
  draft: IDraft;
  choices: IChoices;
  /** Which mode is there; null: that is not known yet. */
  there: IThere | null;
  change: (part: Partial<IDraft>) => void;
  trans: TranslationBundle;
}

interface IButtons {
  isBusy: boolean;
  /** Whether a plan is what comes next. */
  isNext: boolean;
  plan: () => void;
  takeBack: () => void;
}

/** What was chosen of another domain or file system is not meant of this one. */
const AS_IT_IS = { mode: null, sharedPath: null };

/**
 * Which domain and file system, and what is to be there.
 */
export function WiringForm(props: IProps & IButtons): JSX.Element {
  const { choices, plan, trans } = props;
  return (
    <form
      className="jp-HyperPod-Admin-form"
      onSubmit={event => {
        event.preventDefault();
        plan();
      }}
    >
      <Notes notes={choices.notes} />
      <div className="jp-HyperPod-Admin-row">
        <DomainField {...props} />
        <FileSystemField {...props} />
      </div>
      <ModeField {...props} />
      <details className="jp-HyperPod-Admin-options">
        <summary>{trans.__('More')}</summary>
        <MoreFields {...props} />
      </details>
      <Buttons {...props} />
    </form>
  );
}

function Buttons(props: IButtons & Pick<IProps, 'trans'>): JSX.Element {
  const { isBusy, isNext, takeBack, trans } = props;
  return (
    <div className="jp-HyperPod-Admin-buttons">
      <button
        type="submit"
        className={`jp-HyperPod-button${isNext ? ' jp-mod-accept' : ''}`}
        disabled={isBusy}
      >
        {trans.__('Preview changes')}
      </button>
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={isBusy}
        title={trans.__(
          'Preview the removal of the settings that were made here'
        )}
        onClick={takeBack}
      >
        {trans.__('Remove setup…')}
      </button>
    </div>
  );
}

function DomainField({ change, choices, draft, trans }: IProps): JSX.Element {
  const { domains } = choices;
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Studio domain')}
      {domains.length > 0 ? (
        <select
          className="jp-HyperPod-select"
          value={draft.domain}
          onChange={event =>
            change({ ...AS_IT_IS, domain: event.target.value })
          }
        >
          {domains.map(({ id, name }) => (
            <option key={id} value={id}>
              {name === '' ? id : `${name} (${id})`}
            </option>
          ))}
        </select>
      ) : (
        <input
          className="jp-HyperPod-input"
          required
          value={draft.domain}
          placeholder={DOMAIN_ID}
          onChange={event => change({ domain: event.target.value })}
        />
      )}
    </label>
  );
}

/** A choice of those that are known; any other can be typed. */
function FileSystemField({
  change,
  choices,
  draft,
  trans
}: IProps): JSX.Element {
  const known = choices.file_systems.some(one => one.id === draft.fileSystem);
  const [isOther, setIsOther] = React.useState(!known);
  return (
    <>
      <label className="jp-HyperPod-field">
        {trans.__('File system')}
        <select
          className="jp-HyperPod-select"
          value={isOther ? '' : draft.fileSystem}
          onChange={event => {
            const { value } = event.target;
            setIsOther(value === '');
            change({ ...AS_IT_IS, fileSystem: value });
          }}
        >
          {choices.file_systems.map(one => (
            <option key={one.id} value={one.id}>
              {fileSystemText(one, trans)}
            </option>
          ))}
          <option value="">{trans.__('Other')}</option>
        </select>
      </label>
      {isOther && (
        <label className="jp-HyperPod-field">
          {trans.__('File system id')}
          <input
            className="jp-HyperPod-input"
            required
            value={draft.fileSystem}
            placeholder={FILE_SYSTEM_ID}
            onChange={event => change({ fileSystem: event.target.value })}
          />
        </label>
      )}
    </>
  );
}

function ModeField({ change, draft, there, trans }: IProps): JSX.Element {
  const name = React.useId();
  const uids = React.useId();
  const modes: readonly { mode: Mode; label: string; note: string }[] = [
    {
      mode: 'shared',
      label: trans.__('One shared folder'),
      note: trans.__(
        'All users and spaces mount the same folder, future ones too. All users can read all runs; only distinct uids protect them from changes.'
      )
    },
    {
      mode: 'per-user',
      label: trans.__('One folder per user profile'),
      note: trans.__(
        'Each user mounts a folder of their own, which bears the name of the profile. Shared spaces mount nothing, and future users nothing until the next apply.'
      )
    }
  ];
  return (
    <fieldset className="jp-HyperPod-Admin-modes" aria-describedby={uids}>
      <legend>{trans.__('Access')}</legend>
      {modes.map(({ label, mode, note }) => (
        <React.Fragment key={mode}>
          <label>
            <input
              type="radio"
              name={name}
              required
              checked={draft.mode === mode}
              onChange={() => change({ mode })}
            />
            <span>
              {label} <NowMark mode={mode} there={there} trans={trans} />
              <small>{note}</small>
            </span>
          </label>
          {mode === 'shared' && draft.mode === mode && (
            <PathField draft={draft} change={change} trans={trans} />
          )}
        </React.Fragment>
      ))}
      <UidNote id={uids} trans={trans} />
    </fieldset>
  );
}

/** What uids are for. */
function UidNote({
  id,
  trans
}: Pick<IProps, 'trans'> & { id: string }): JSX.Element {
  return (
    <small id={id}>
      {trans.__(
        'User profiles with the same uid (Studio’s default: 200001) are separated by the mount path only. Set a uid (CustomPosixUserConfig) when you create a profile.'
      )}
    </small>
  );
}

/** That a mode is there by now. */
function NowMark({
  mode,
  there,
  trans
}: Pick<IProps, 'there' | 'trans'> & { mode: Mode }): JSX.Element | null {
  if (there?.mode !== mode && there?.mode !== 'both') {
    return null;
  }
  return (
    <em className="jp-HyperPod-Admin-now">
      {there.mode === 'both'
        ? trans.__('current for some')
        : trans.__('current')}
    </em>
  );
}

/** The folder that all share. */
function PathField({
  change,
  draft,
  trans
}: Pick<IProps, 'change' | 'draft' | 'trans'>): JSX.Element {
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Folder')}
      <input
        className="jp-HyperPod-input"
        required
        pattern="(\/[A-Za-z0-9._\-]+)+"
        title={trans.__('Start with a slash, such as /shared')}
        value={draft.sharedPath ?? ''}
        onChange={event => change({ sharedPath: event.target.value })}
      />
    </label>
  );
}

function MoreFields({ change, choices, draft, trans }: IProps): JSX.Element {
  return (
    <div className="jp-HyperPod-Admin-more">
      <label>
        {trans.__('User profiles')}
        <input
          className="jp-HyperPod-input"
          value={draft.profiles}
          placeholder={trans.__('all current and future profiles')}
          onChange={event => change({ profiles: event.target.value })}
        />
      </label>
      <FolderFields
        draft={draft.folders}
        clusters={choices.folder_clusters}
        change={folders => change({ folders })}
        trans={trans}
      />
      <label className="jp-HyperPod-Admin-check">
        <input
          type="checkbox"
          checked={draft.takeOver}
          onChange={event => change({ takeOver: event.target.checked })}
        />
        {trans.__('Overwrite settings that were made elsewhere')}
      </label>
    </div>
  );
}
