import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { Schema } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { numberText } from '../training/curveData';

/** What MLflow has of a run. */
export type IRunMlflow = Schema<'RunMlflow'>;

/**
 * The run in MLflow that belongs to a run: a link, its status, parameters, last metrics. Nothing, for a run without a tracking server.
 */
export function MlflowSection(props: {
  /** Asks the server; another function asks again. */
  load: () => Promise<IRunMlflow>;
  /** Shows its page in another tab of the browser. */
  open: () => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { open, trans } = props;
  const { error, renew, value } = useLoaded(props.load);
  if (error) {
    return (
      <section>
        <h2>{trans.__('MLflow')}</h2>
        <ErrorMessage error={error} trans={trans} retry={renew} />
      </section>
    );
  }
  if (!value?.tracking_uri) {
    return null;
  }
  const { mlflow, problem } = value;
  const lists: [string, [string, string][]][] = mlflow
    ? [
        [trans.__('Parameters'), Object.entries(mlflow.params)],
        [
          trans.__('Metrics'),
          Object.entries(mlflow.metrics).map(([name, one]) => [
            name,
            numberText(one.value ?? NaN)
          ])
        ]
      ]
    : [];
  return (
    <section>
      <h2>{trans.__('MLflow')}</h2>
      {mlflow ? (
        <>
          <button type="button" className="jp-HyperPod-link" onClick={open}>
            {trans.__('Open %1 in MLflow', mlflow.name)}
          </button>
          {` (${mlflow.status.toLowerCase()})`}
        </>
      ) : (
        <span role="status">{problem ?? trans.__('No run in MLflow.')}</span>
      )}
      {' · '}
      <button type="button" className="jp-HyperPod-link" onClick={renew}>
        {trans.__('Refresh')}
      </button>
      {lists.map(
        ([title, facts]) =>
          facts.length > 0 && (
            <React.Fragment key={title}>
              <h3>{title}</h3>
              <dl className="jp-HyperPod-facts" aria-label={title}>
                {facts.map(([name, text]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{text}</dd>
                  </div>
                ))}
              </dl>
            </React.Fragment>
          )
      )}
    </section>
  );
}
