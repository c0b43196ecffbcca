import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IRunClient } from './client';
import { ErrorMessage } from '../components/errorMessage';
import { LoadedText } from '../components/loadedText';
import { useLoaded } from '../components/useLoaded';

/**
 * The files that went with a run, as they were then.
 */
export class CodeTab extends ReactWidget {
  constructor(client: IRunClient, runId: string, trans: TranslationBundle) {
    super();
    this.addClass('jp-HyperPod-TextTab');
    this._client = client;
    this._runId = runId;
    this._trans = trans;
  }

  protected override render(): JSX.Element {
    return (
      <CodeFiles
        client={this._client}
        runId={this._runId}
        trans={this._trans}
      />
    );
  }

  private readonly _client: IRunClient;
  private readonly _runId: string;
  private readonly _trans: TranslationBundle;
}

function CodeFiles(props: {
  client: IRunClient;
  runId: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, runId, trans } = props;
  const [chosen, setChosen] = React.useState<string | null>(null);
  const loadList = React.useCallback(() => client.code(runId), [client, runId]);
  const { error, retry, value: files } = useLoaded(loadList);
  const path = chosen ?? files?.[0]?.path ?? null;
  const loadFile = React.useCallback(
    async () =>
      path === null ? '' : (await client.codeFile(runId, path)).text,
    [client, runId, path]
  );
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  if (files?.length === 0) {
    return (
      <p className="jp-HyperPod-Message">
        {trans.__('This run has no files.')}
      </p>
    );
  }
  return (
    <div className="jp-HyperPod-CodeTab">
      <ul aria-label={trans.__('Files')}>
        {files?.map(file => (
          <li key={file.path}>
            <button
              type="button"
              className="jp-HyperPod-link"
              aria-current={file.path === path}
              onClick={() => setChosen(file.path)}
            >
              {file.path}
            </button>
          </li>
        ))}
      </ul>
      <div>{files && <LoadedText load={loadFile} trans={trans} />}</div>
    </div>
  );
}
