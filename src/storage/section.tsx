import { Clipboard, Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import {
  copyIcon,
  folderIcon,
  refreshIcon,
  Toolbar
} from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { IconButton } from '../components/iconButton';
import { SignalWidget } from '../components/signalWidget';
import { StateChip } from '../components/stateChip';
import { IStorageClient } from './client';
import { StorageModel } from './model';
import { IIsolation, IPlace, ISeparation, ISide, IStorage } from './types';
import { levelText, placeText, separationLines } from './words';

const BRIEFLY = 3000;

/**
 * What the section does with the application.
 */
export interface IStorageActions {
  /** Show the partition in the file browser. */
  openPartition(): void;
}

/**
 * The file systems of the server's machine, who else can read them, and the partition's path on each side.
 */
export class StorageSection
  extends SignalWidget
  implements Toolbar.IWidgetToolbar
{
  constructor(
    client: IStorageClient,
    actions: IStorageActions,
    trans: TranslationBundle
  ) {
    const model = new StorageModel(client);
    super(model.changed);
    this.addClass('jp-HyperPod-Section');
    this.title.label = trans.__('Storage');
    this._model = model;
    this._trans = trans;
    this.toolbar = new Toolbar();
    this.toolbar.addItem(
      'refresh',
      new IconButton(
        refreshIcon,
        trans.__('Refresh storage'),
        () => void model.refresh()
      )
    );
    this.toolbar.addItem(
      'open',
      new IconButton(
        folderIcon,
        trans.__('Open the storage partition in the file browser'),
        () => actions.openPartition()
      )
    );
  }

  readonly toolbar: Toolbar;

  override dispose(): void {
    if (!this.isDisposed) {
      super.dispose();
      this._model.dispose();
    }
  }

  protected override render(): JSX.Element {
    const { error, storage } = this._model;
    const trans = this._trans;
    if (storage === null) {
      return error ? (
        <ErrorMessage
          error={error}
          trans={trans}
          retry={() => void this._model.refresh()}
        />
      ) : (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('Loading…')}
        </p>
      );
    }
    return (
      <>
        {error && <ErrorMessage error={error} trans={trans} />}
        <StorageList storage={storage} trans={trans} />
      </>
    );
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._look();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._look();
  }

  /** Nothing is requested before it is visible. */
  private _look(): void {
    if (this.isVisible) {
      this._model.look();
    }
  }

  private readonly _model: StorageModel;
  private readonly _trans: TranslationBundle;
}

function StorageList(props: {
  storage: IStorage;
  trans: TranslationBundle;
}): JSX.Element {
  const { storage, trans } = props;
  const { partition } = storage;
  // The partition itself says more than the disk of this machine that it is a folder of.
  const others = storage.file_systems.filter(
    place => place.network && !place.runs_go_here
  );
  return (
    <>
      <SeparationLines separation={storage.separation} trans={trans} />
      <ul className="jp-HyperPod-list" aria-label={trans.__('File systems')}>
        {[partition, ...others].map(place => (
          <PlaceItem key={place.path} place={place} trans={trans} />
        ))}
      </ul>
      <ul
        className="jp-HyperPod-list"
        aria-label={trans.__('Storage partition paths')}
      >
        {storage.clusters.map(side => (
          <SideItem key={side.cluster} side={side} trans={trans} />
        ))}
      </ul>
      {storage.notes.map(note => (
        <p className="jp-HyperPod-Message" key={note}>
          {note}
        </p>
      ))}
    </>
  );
}

/** That other users can exchange or write the user's runs, and what to do about it; nothing where they can't. */
function SeparationLines(props: {
  separation: ISeparation | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { separation, trans } = props;
  const lines = separation === null ? [] : separationLines(separation, trans);
  return (
    <>
      {lines.map(line => (
        <p className="jp-HyperPod-Message jp-mod-warn" key={line}>
          {line}
        </p>
      ))}
    </>
  );
}

function PlaceItem(props: {
  place: IPlace;
  trans: TranslationBundle;
}): JSX.Element {
  const { place, trans } = props;
  const { isolation } = place;
  return (
    <li className="jp-HyperPod-storage">
      <span className="jp-HyperPod-item-name" title={place.path}>
        {place.file_system ?? place.kind ?? place.path}
        {place.mounted_folder !== null && ` ${place.mounted_folder}`}
      </span>
      {isolation && (
        <StateChip
          state="isolation"
          text={levelText(isolation.level, trans)}
          trans={trans}
        />
      )}
      <span className="jp-HyperPod-item-detail">{place.path}</span>
      <span className="jp-HyperPod-item-detail">{placeText(place, trans)}</span>
      {place.problem !== null && (
        <span className="jp-HyperPod-item-detail">{place.problem}</span>
      )}
      {isolation && <Evidence isolation={isolation} trans={trans} />}
    </li>
  );
}

/** Who else can read it, and why this matters. */
function Evidence(props: {
  isolation: IIsolation;
  trans: TranslationBundle;
}): JSX.Element {
  const { isolation, trans } = props;
  return (
    <details className="jp-HyperPod-item-detail">
      <summary>{trans.__('Read access')}</summary>
      <ul>
        {[...isolation.readers, ...isolation.evidence].map(line => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </details>
  );
}

function SideItem(props: {
  side: ISide;
  trans: TranslationBundle;
}): JSX.Element {
  const { side, trans } = props;
  const { there } = side;
  const label = trans.__('Copy the path on %1', side.cluster);
  return (
    <li className="jp-HyperPod-storage">
      <span className="jp-HyperPod-item-name">{side.cluster}</span>
      {there !== null && (
        <button
          type="button"
          className="jp-HyperPod-IconButton"
          title={label}
          aria-label={label}
          onClick={() => copy(there, trans)}
        >
          <copyIcon.react tag="span" />
        </button>
      )}
      <span className="jp-HyperPod-item-detail">{there ?? side.reason}</span>
    </li>
  );
}

function copy(path: string, trans: TranslationBundle): void {
  Clipboard.copyToSystem(path);
  Notification.info(trans.__('Copied: %1', path), { autoClose: BRIEFLY });
}
