import { PathExt } from '@jupyterlab/coreutils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError, isRecord } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { bytesText } from '../components/words';
import { ICodeFile, IRunClient } from './client';
import { DiffView } from './diffView';
import { IRun } from './types';

/** What the server says of a file that is no text, or too long. */
const UNREADABLE = ['no_text', 'too_long'];

/**
 * What shows a run's files.
 */
export interface ICodeProps {
  readonly client: Pick<IRunClient, 'code' | 'codeFile' | 'spec'>;
  readonly runId: string;
  /** The run before of the same source; null when there is none. */
  readonly previous: () => IRun | null;
  readonly trans: TranslationBundle;
}

/** The name of the file that a run was submitted from; null for a command or where it is not known. */
async function sourcePath(
  client: Pick<IRunClient, 'spec'>,
  runId: string
): Promise<string | null> {
  const { source } = await client
    .spec(runId)
    .catch(() => ({ source: undefined }));
  return isRecord(source) && typeof source.path === 'string'
    ? PathExt.basename(source.path)
    : null;
}

/**
 * The user's files, what runs before what only went along, and those that were added so that they run.
 *
 * @param source - the name of the file that was submitted
 */
export function sortedFiles(
  files: readonly ICodeFile[],
  source: string | null
): {
  readonly own: readonly ICodeFile[];
  readonly added: readonly ICodeFile[];
} {
  const own = files.filter(file => !isAdded(file.path));
  const added = files.filter(file => isAdded(file.path));
  const rank = ({ path }: ICodeFile) =>
    path.startsWith('code/') ? 0 : PathExt.basename(path) === source ? 1 : 2;
  return {
    own: own.sort(
      (one, other) =>
        rank(one) - rank(other) ||
        one.path.localeCompare(other.path, undefined, { numeric: true })
    ),
    added
  };
}

function isAdded(path: string): boolean {
  return (
    path.includes('hyperpod_runtime/') ||
    path.endsWith('.compiled.py') ||
    path === 'code/cells.json' ||
    path === 'code/lib/ipython.zip' ||
    !/^(code|work)\//.test(path)
  );
}

/**
 * The files that went with a run, as they were then: the user's first, with what is different from the run before.
 */
export function CodeFiles(props: ICodeProps): JSX.Element {
  const { client, previous, runId, trans } = props;
  const [chosen, setChosen] = React.useState<string | null>(null);
  const [compares, setCompares] = React.useState(false);
  const loadList = React.useCallback(
    async () => ({
      files: await client.code(runId),
      source: await sourcePath(client, runId)
    }),
    [client, runId]
  );
  const { error, retry, value } = useLoaded(loadList);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  if (value === null) {
    return (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  const { added, own } = sortedFiles(value.files, value.source);
  const path = chosen ?? own[0]?.path ?? added[0]?.path;
  if (path === undefined) {
    return (
      <p className="jp-HyperPod-Message">
        {trans.__('This run has no files.')}
      </p>
    );
  }
  const before = previous();
  const list = { path, choose: setChosen, trans };
  return (
    <div className="jp-HyperPod-CodeTab">
      <nav aria-label={trans.__('Files')}>
        <FileList {...list} files={own} />
        {added.length > 0 && (
          <details open={own.length === 0}>
            <summary>
              {trans._n(
                'Runtime (%1 file)',
                'Runtime (%1 files)',
                added.length
              )}
            </summary>
            <FileList {...list} files={added} />
          </details>
        )}
      </nav>
      <div className="jp-HyperPod-CodeTab-file">
        <div className="jp-HyperPod-CodeTab-head">
          <span>{shortPath(path)}</span>
          {before && (
            <button
              type="button"
              className="jp-HyperPod-button"
              aria-pressed={compares}
              title={before.run_id}
              onClick={() => setCompares(!compares)}
            >
              {trans.__('Changes since the previous run')}
            </button>
          )}
        </div>
        {compares && before ? (
          <FileChanges {...props} path={path} before={before.run_id} />
        ) : (
          <FileText {...props} path={path} />
        )}
      </div>
    </div>
  );
}

function FileList(props: {
  files: readonly ICodeFile[];
  path: string;
  choose: (path: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { choose, files, path } = props;
  return (
    <ul>
      {files.map(file => (
        <li key={file.path}>
          <button
            type="button"
            title={file.path}
            aria-current={file.path === path}
            onClick={() => choose(file.path)}
          >
            <span>{shortPath(file.path)}</span>
            <span className="jp-HyperPod-CodeTab-size">
              {file.size === null ? '' : bytesText(file.size)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A path without the folder of the bundle that all of its kind are in. */
function shortPath(path: string): string {
  return path.replace(/^(code|work)\//, '');
}

function FileText(props: ICodeProps & { path: string }): JSX.Element {
  const { client, path, runId, trans } = props;
  const load = React.useCallback(
    async () => (await client.codeFile(runId, path)).text,
    [client, runId, path]
  );
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <FileProblem error={error} retry={retry} trans={trans} />;
  }
  return value === null ? (
    <p className="jp-HyperPod-Message" role="status">
      {trans.__('Loading…')}
    </p>
  ) : (
    <pre className="jp-HyperPod-Source" tabIndex={0}>
      {value
        .replace(/\n$/, '')
        .split('\n')
        .map((text, index) => (
          <span key={index}>
            <span className="jp-HyperPod-Source-number">{index + 1}</span>
            {text}
            {'\n'}
          </span>
        ))}
    </pre>
  );
}

/** That a file is no text is no fault. */
function FileProblem(props: {
  error: ApiError;
  retry: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { error, retry, trans } = props;
  if (!UNREADABLE.includes(error.code)) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  return (
    <p className="jp-HyperPod-Message" role="status">
      {error.code === 'no_text'
        ? trans.__('This file is binary and cannot be shown.')
        : trans.__('This file is too large to be shown.')}
    </p>
  );
}

function FileChanges(
  props: ICodeProps & { path: string; before: string }
): JSX.Element {
  const { before, client, path, runId, trans } = props;
  const load = React.useCallback(async () => {
    const [old, now] = await Promise.all([
      client.codeFile(before, path).catch((reason: unknown) => {
        if (ApiError.of(reason).isMissing) {
          return null;
        }
        throw reason;
      }),
      client.codeFile(runId, path)
    ]);
    return { old: old?.text ?? null, now: now.text };
  }, [client, before, runId, path]);
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <FileProblem error={error} retry={retry} trans={trans} />;
  }
  if (value === null) {
    return (
      <p className="jp-HyperPod-Message" role="status">
        {trans.__('Loading…')}
      </p>
    );
  }
  return <DiffView before={value.old} now={value.now} trans={trans} />;
}
