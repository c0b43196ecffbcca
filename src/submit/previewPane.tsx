import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ChangesView } from './changesView';
import { SubmitModel } from './model';
import { shellText } from './shell';
import { ToggleBar } from './toggleBar';
import { IPart, IPreview } from './types';

type View = 'code' | 'script' | 'changes' | 'files';

const VIEWS: readonly View[] = ['code', 'script', 'changes', 'files'];

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
}

/**
 * Exactly what would run, and what is different from the last time; folded until one of it is wanted.
 */
export function PreviewPane({ model, trans }: IProps): JSX.Element {
  const [view, setView] = React.useState<View | null>(null);
  const region = React.useRef<HTMLDivElement>(null);
  const id = React.useId();
  React.useEffect(() => {
    if (view !== null) {
      region.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [view]);
  return (
    <section
      className="jp-HyperPod-PreviewPane"
      aria-label={trans.__('Preview')}
      data-busy={model.busy || model.isStale}
    >
      <div className="jp-HyperPod-PreviewPane-bar">
        <span>{trans.__('Preview')}</span>
        <ToggleBar
          label={trans.__('Preview')}
          items={VIEWS.map(name => ({
            name,
            label: viewTitle(name, model, trans)
          }))}
          open={view === null ? [] : [view]}
          regionId={() => id}
          toggle={name => setView(name === view ? null : name)}
        />
      </div>
      {view !== null && (
        <div
          ref={region}
          id={id}
          role="region"
          aria-label={viewTitle(view, model, trans)}
          className="jp-HyperPod-PreviewPane-content"
          tabIndex={0}
        >
          {model.isStale && model.preview && (
            <p className="jp-HyperPod-PreviewPane-stale" role="status">
              {staleWords(model, trans)}
            </p>
          )}
          <Content view={view} model={model} trans={trans} />
        </div>
      )}
    </section>
  );
}

function staleWords(model: SubmitModel, trans: TranslationBundle): string {
  const count = model.problemCount;
  return count > 0
    ? trans._n(
        'Before your last change. Fix %1 field to update the preview.',
        'Before your last change. Fix %1 fields to update the preview.',
        count
      )
    : trans.__('Before your last change.');
}

function viewTitle(
  view: View,
  model: SubmitModel,
  trans: TranslationBundle
): string {
  switch (view) {
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

function Content(props: IProps & { view: View }): JSX.Element {
  const { model, trans, view } = props;
  const { preview } = model;
  if (view === 'changes') {
    return (
      <ChangesView
        changes={model.changes}
        cluster={model.draft.cluster}
        trans={trans}
      />
    );
  }
  if (!preview) {
    return <p className="jp-HyperPod-Message">{noPreview(model, trans)}</p>;
  }
  switch (view) {
    case 'code':
      return <Parts preview={preview} trans={trans} />;
    case 'script':
      return <pre>{preview.rendered.text}</pre>;
    default:
      return <pre>{preview.files.join('\n')}</pre>;
  }
}

function noPreview(model: SubmitModel, trans: TranslationBundle): string {
  const count = model.problemCount;
  if (count > 0) {
    return trans._n(
      'Fix %1 field to see the preview.',
      'Fix %1 fields to see the preview.',
      count
    );
  }
  return model.busy
    ? trans.__('Loading the preview…')
    : trans.__('No preview yet.');
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
      <p className="jp-HyperPod-PreviewPane-title">
        {trans.__('Command of each process')}
      </p>
      <pre>{shellText(preview.command)}</pre>
    </>
  );
}

function Part({ part }: { part: IPart }): JSX.Element {
  return (
    <>
      <p className="jp-HyperPod-PreviewPane-title">{part.title}</p>
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
