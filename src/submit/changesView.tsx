import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ICodeChange, ISettingChange } from './changes';
import { IChanges } from './history';
import { labelOf } from './labels';

const KINDS: Readonly<Record<string, string>> = {
  '+': 'added',
  '-': 'removed'
};

/**
 * What is different from the last run of the same file.
 */
export function ChangesView(props: {
  changes: IChanges | null;
  cluster: string | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { changes, cluster, trans } = props;
  if (!changes) {
    return (
      <p className="jp-HyperPod-Message">
        {trans.__('No previous run to compare with.')}
      </p>
    );
  }
  const { code, settings } = changes;
  const same = !changes.cluster && settings.length === 0;
  return (
    <div className="jp-HyperPod-ChangesView">
      <p className="jp-HyperPod-PreviewPane-title">
        {trans.__('Settings compared with %1', changes.runId)}
      </p>
      {same && <p>{trans.__('No changes.')}</p>}
      <dl>
        {changes.cluster && (
          <Setting
            name={trans.__('Cluster')}
            before={changes.cluster}
            after={cluster ?? ''}
            trans={trans}
          />
        )}
        {settings.map(one => (
          <Setting
            key={one.field.path}
            {...namesOf(one, trans)}
            trans={trans}
          />
        ))}
      </dl>
      <p className="jp-HyperPod-PreviewPane-title">{trans.__('Code')}</p>
      {code === null && <p>{trans.__('Cannot compare the code.')}</p>}
      {code?.length === 0 && <p>{trans.__('No changes.')}</p>}
      {code?.map((one, at) => (
        <Code key={at} change={one} trans={trans} />
      ))}
    </div>
  );
}

function namesOf(
  change: ISettingChange,
  trans: TranslationBundle
): { name: string; before: string; after: string } {
  const { after, before, field } = change;
  return { name: labelOf(field, trans), before, after };
}

function Setting(props: {
  name: string;
  before: string;
  after: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { after, before, name, trans } = props;
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <del>{before || trans.__('default')}</del>{' '}
        <ins>{after || trans.__('default')}</ins>
      </dd>
    </div>
  );
}

function Code(props: {
  change: ICodeChange;
  trans: TranslationBundle;
}): JSX.Element {
  const { change, trans } = props;
  return (
    <>
      <p className="jp-HyperPod-PreviewPane-title">
        {codeTitle(change, trans)}
      </p>
      <pre className="jp-HyperPod-Diff">
        {change.lines.map((line, at) => (
          <Line key={at} line={line} />
        ))}
      </pre>
    </>
  );
}

function Line({ line }: { line: string }): JSX.Element {
  return (
    <span data-kind={KINDS[line[0]] ?? 'same'}>
      {line[0].replace('-', '−')} {line.slice(1)}
      {'\n'}
    </span>
  );
}

function codeTitle(change: ICodeChange, trans: TranslationBundle): string {
  if (change.number === null) {
    return trans.__('File');
  }
  switch (change.kind) {
    case 'new':
      return trans.__('Cell %1, not in the last run', change.number);
    case 'gone':
      return trans.__('Cell %1, only in the last run', change.number);
    default:
      return trans.__('Cell %1', change.number);
  }
}
