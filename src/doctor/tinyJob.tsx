import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/**
 * Submits a real job, only on a click: it is the one check that costs something.
 */
export function TinyJob(props: {
  /** The clusters to choose from. */
  clusters: readonly string[];
  isBusy: boolean;
  run: (cluster: string) => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { clusters, isBusy, run, trans } = props;
  const [chosen, setChosen] = React.useState<string | null>(null);
  const id = React.useId();
  if (clusters.length === 0) {
    return null;
  }
  const cluster =
    chosen !== null && clusters.includes(chosen) ? chosen : clusters[0];
  return (
    <section className="jp-HyperPod-Doctor-job" aria-labelledby={id}>
      <h2 id={id}>{trans.__('Test with a small job')}</h2>
      <p>
        {trans.__(
          'Repeats the checks for this cluster, then submits a real job: one task on one node. It waits up to three minutes for the job and its log, then cancels the job and removes its files. If you pay for nodes by use, this job costs money.'
        )}
      </p>
      <label>
        {trans.__('Cluster')}
        <select
          className="jp-HyperPod-select"
          value={cluster}
          onChange={event => setChosen(event.target.value)}
        >
          {clusters.map(name => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        className="jp-HyperPod-button"
        disabled={isBusy}
        onClick={() => run(cluster)}
      >
        {trans.__('Run a test job')}
      </button>
    </section>
  );
}
