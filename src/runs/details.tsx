import { Clipboard } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { momentText } from '../components/words';
import { IRun } from './types';

/**
 * A run's ids, paths and times, each of which can be copied.
 */
export function Details(props: {
  run: IRun;
  trans: TranslationBundle;
}): JSX.Element {
  const { run, trans } = props;
  const copied = [
    [trans.__('Run'), run.run_id],
    [trans.__('Scheduler id'), run.scheduler_id],
    [trans.__('Folder'), run.bundle],
    [trans.__('Nodes'), nodesText(run)]
  ] as const;
  const said = [
    [trans.__('User'), run.user],
    [trans.__('Runs as space'), run.space],
    [trans.__('Kind'), run.kind],
    [trans.__('Submitted'), momentText(run.submitted_at)],
    [trans.__('Started'), momentText(run.started_at)],
    [trans.__('Ended'), momentText(run.ended_at)]
  ] as const;
  return (
    <details className="jp-HyperPod-Details">
      <summary>{trans.__('Details')}</summary>
      <dl className="jp-HyperPod-facts jp-mod-rows">
        {copied.map(
          ([name, text]) =>
            text && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <code>{text}</code>
                  <button
                    type="button"
                    className="jp-HyperPod-link"
                    aria-label={trans.__('Copy %1', name)}
                    onClick={() => Clipboard.copyToSystem(text)}
                  >
                    {trans.__('Copy')}
                  </button>
                </dd>
              </div>
            )
        )}
        {said.map(
          ([name, text]) =>
            text && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{text}</dd>
              </div>
            )
        )}
      </dl>
    </details>
  );
}

function nodesText(run: IRun): string {
  const last = run.attempts[run.attempts.length - 1];
  return last?.nodes.join(', ') ?? '';
}
