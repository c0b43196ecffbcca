import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { Tabs } from '../components/tabs';
import { ChangesView } from './changesView';
import { SubmitModel } from './model';
import { shellText } from './shell';
import { IPart, IPreview } from './types';

type Tab = 'code' | 'script' | 'changes' | 'files';

const TABS: readonly Tab[] = ['code', 'script', 'changes', 'files'];

/**
 * Exactly what would run, and what is different from the last time.
 */
export function PreviewPane(props: {
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, trans } = props;
  return (
    <div className="jp-HyperPod-PreviewPane" data-busy={model.busy}>
      <Tabs
        label={trans.__('Preview')}
        tabs={TABS.map(name => ({ name, label: tabTitle(name, model, trans) }))}
        panelClass="jp-HyperPod-PreviewPane-content"
      >
        {tab => <Content tab={tab} model={model} trans={trans} />}
      </Tabs>
    </div>
  );
}

function tabTitle(
  tab: Tab,
  model: SubmitModel,
  trans: TranslationBundle
): string {
  switch (tab) {
    case 'code':
      return trans.__('Code');
    case 'script':
      return model.preview?.rendered.name ?? trans.__('Script');
    case 'files':
      return trans.__('Files (%1)', model.preview?.files.length ?? 0);
    default:
      return changesTitle(model, trans);
  }
}

function changesTitle(model: SubmitModel, trans: TranslationBundle): string {
  const { changes } = model;
  const count = changes
    ? changes.settings.length +
      (changes.cluster ? 1 : 0) +
      (changes.code?.length ?? 0)
    : 0;
  return count > 0 ? trans.__('Changes (%1)', count) : trans.__('Changes');
}

function Content(props: {
  tab: Tab;
  model: SubmitModel;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, tab, trans } = props;
  const { preview } = model;
  if (tab === 'changes') {
    return (
      <ChangesView
        changes={model.changes}
        cluster={model.draft.cluster}
        trans={trans}
      />
    );
  }
  if (!preview) {
    return (
      <p className="jp-HyperPod-Message">
        {model.busy
          ? trans.__('Loading the preview…')
          : trans.__('No preview yet.')}
      </p>
    );
  }
  switch (tab) {
    case 'code':
      return <Parts preview={preview} trans={trans} />;
    case 'script':
      return <pre>{preview.rendered.text}</pre>;
    default:
      return <pre>{preview.files.join('\n')}</pre>;
  }
}

function Parts(props: {
  preview: IPreview;
  trans: TranslationBundle;
}): JSX.Element {
  const { preview, trans } = props;
  return (
    <>
      {preview.parts.map((part, at) => (
        <Part key={at} part={part} />
      ))}
      <h4>{trans.__('Command of each process')}</h4>
      <pre>{shellText(preview.command)}</pre>
    </>
  );
}

function Part({ part }: { part: IPart }): JSX.Element {
  return (
    <>
      <h4>{part.title}</h4>
      <pre>{part.text}</pre>
      {part.notes.length > 0 && (
        <ul className="jp-HyperPod-PreviewPane-notes">
          {part.notes.map((note, at) => (
            <li key={at}>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
}
