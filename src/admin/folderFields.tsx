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
        {trans.__('Who looks at folders and makes them')}
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

/** Only where there is a choice; where there is no cluster of the kind, that is said. */
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
          'The configuration of the Jupyter server has no such cluster: add it there first.'
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
  const configured = trans.__('as in the configuration');
  switch (field) {
    case 'mounted_at':
      return mountedTexts(by, trans);
    case 'queue':
      return {
        label: trans.__('Slurm partition of the job'),
        placeholder: trans.__('the cluster’s default')
      };
    case 'namespace':
      return {
        label: trans.__('Namespace of the claim'),
        placeholder: configured
      };
    case 'claim':
      return {
        label: trans.__('Claim of the whole file system'),
        placeholder: configured
      };
    case 'image':
      return {
        label: trans.__('Image of the pod, by its digest'),
        placeholder: configured,
        title: trans.__('It has a python3: registry/name@sha256:…')
      };
    default:
      return {
        label: trans.__('User of the cluster’s jobs'),
        placeholder: trans.__('nobody is let in besides the owner'),
        title:
          by === 'kubernetes'
            ? trans.__('A number; folders let this user in by access lists')
            : trans.__(
                'A number or a name; folders let this user in by access lists'
              )
      };
  }
}

function mountedTexts(by: FolderMaker, trans: TranslationBundle): ITexts {
  return by === 'here'
    ? {
        label: trans.__(
          'Where the Jupyter server’s machine has the whole file system'
        ),
        placeholder: MOUNTED_AT,
        title: trans.__(
          'Folders are looked at and made there, such as in /fsx; that takes root'
        )
      }
    : {
        label: trans.__('Where the nodes have the whole file system'),
        placeholder: MOUNTED_AT
      };
}
