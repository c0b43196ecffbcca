import { TranslationBundle } from '@jupyterlab/translation';
import { structuredPatch } from 'diff';
import * as React from 'react';

const KINDS: Readonly<Record<string, string>> = {
  '+': 'added',
  '-': 'removed'
};

/**
 * What is different in a text, with a few lines around each change.
 *
 * @param before - null where there was no such text
 */
export function DiffView(props: {
  before: string | null;
  now: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { before, now, trans } = props;
  if (before === now) {
    return (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('No changes in this file.')}
      </p>
    );
  }
  const { hunks } = structuredPatch('', '', before ?? '', now, '', '', {
    context: 3
  });
  return (
    <>
      {before === null && (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('The previous run had no such file.')}
        </p>
      )}
      <pre className="jp-HyperPod-Diff" tabIndex={0}>
        {hunks.map((hunk, at) => (
          <React.Fragment key={at}>
            {at > 0 && <span data-kind="gap">{'⋯\n'}</span>}
            {hunk.lines
              // A backslash begins what a patch says of the file's end.
              .filter(line => !line.startsWith('\\'))
              .map((line, index) => (
                <span key={index} data-kind={KINDS[line[0]] ?? 'same'}>
                  {line[0].replace('-', '−')} {line.slice(1)}
                  {'\n'}
                </span>
              ))}
          </React.Fragment>
        ))}
      </pre>
    </>
  );
}
