import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import {
  FIELDS_OF,
  FOLDER_MAKERS,
  FolderField,
  FolderMaker,
  IFolderCluster,
  IFolderDraft,
  withMaker
} from './folders';
import { folderMakerText } from './words';

/** Where HyperPod mounts the cluster's file system. */
const MOUNTED_AT = '/fsx';

interface IProps {
  draft: IFolderDraft;
  clusters: readonly IFolderCluster[];
  change: (draft: IFolderDraft) => void;
  trans: TranslationBundle;
}

/**
 * Who looks at folders and makes them, and what that one has to know.
 */
export function FolderFields(props: IProps): JSX.Element {
  const { change, clusters, draft, trans } = props;
  return (
    <>
      <label>
        {trans.__('Create and check folders with')}
        <select
          className="jp-HyperPod-select"
          value={draft.by}
          onChange={event => {
            const { value } = event.target;
            const by = FOLDER_MAKERS.find(one => one === value) ?? 'none';
            change(withMaker(draft, by, clusters));
          }}
        >
          {FOLDER_MAKERS.map(by => (
            <option key={by} value={by}>
              {folderMakerText(by, trans)}
            </option>
          ))}
        </select>
      </label>
      {FIELDS_OF[draft.by].map(field =>
        field === 'cluster' ? (
          <ClusterField key={field} {...props} />
        ) : (
          <TextField key={field} field={field} {...props} />
        )
      )}
    </>
  );
}

/** Shown only where there is a choice; without a cluster of the kind, a message says so. */
function ClusterField(props: IProps): JSX.Element | null {
  const { change, clusters, draft, trans } = props;
  const fitting = clusters.filter(({ kind }) => kind === draft.by);
  if (fitting.length === 1) {
    return null;
  }
  if (fitting.length === 0) {
    return (
      <p role="note">
        {trans.__(
          'The Jupyter server has no cluster of this kind. Add one to its configuration first.'
        )}
      </p>
    );
  }
  return (
    <label>
      {trans.__('Cluster')}
      <select
        className="jp-HyperPod-select"
        value={draft.cluster}
        onChange={event => change({ ...draft, cluster: event.target.value })}
      >
        {fitting.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function TextField(props: IProps & { field: FolderField }): JSX.Element {
  const { change, draft, field, trans } = props;
  const { label, placeholder, title } = textsOf(field, draft.by, trans);
  return (
    <label>
      {label}
      <input
        className="jp-HyperPod-input"
        required={field === 'mounted_at' && draft.by === 'here'}
        value={draft[field]}
        placeholder={placeholder}
        title={title}
        onChange={event => change({ ...draft, [field]: event.target.value })}
      />
    </label>
  );
}

interface ITexts {
  label: string;
  placeholder: string;
  title?: string;
}

function textsOf(
  field: FolderField,
  by: FolderMaker,
  trans: TranslationBundle
): ITexts {
  const configured = trans.__('from the configuration');
  switch (field) {
    case 'mounted_at':
      return mountedTexts(by, trans);
    case 'queue':
      return {
        label: trans.__('Slurm partition'),
        placeholder: trans.__('cluster default')
      };
    case 'namespace':
      return {
        label: trans.__('Namespace of the PVC'),
        placeholder: configured
      };
    case 'claim':
      return {
        label: trans.__('PVC for the whole file system'),
        placeholder: configured
      };
    case 'image':
      return {
        label: trans.__('Pod image with digest'),
        placeholder: configured,
        title: trans.__(
          'The image must contain python3: registry/name@sha256:…'
        )
      };
    default:
      return {
        label: trans.__('User that runs cluster jobs'),
        placeholder: trans.__('only the owner has access'),
        title:
          by === 'kubernetes'
            ? trans.__(
                'A numeric user id. Access lists give this user access to the folders.'
              )
            : trans.__(
                'A user name or numeric id. Access lists give this user access to the folders.'
              )
      };
  }
}

function mountedTexts(by: FolderMaker, trans: TranslationBundle): ITexts {
  return by === 'here'
    ? {
        label: trans.__(
          'Mount path of the whole file system on the Jupyter server'
        ),
        placeholder: MOUNTED_AT,
        title: trans.__(
          'Folders are checked and created under this path, such as /fsx. This requires root.'
        )
      }
    : {
        label: trans.__('Mount path of the whole file system on the nodes'),
        placeholder: MOUNTED_AT
      };
}
