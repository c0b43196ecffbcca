import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/**
 * Sends a real job, on a click of its own: it is the one step that costs something.
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
      <h2 id={id}>{trans.__('Try it with a tiny job')}</h2>
      <p>
        {trans.__(
          'Looks at the way to this cluster again, and then sends a real job: one task on one node. It waits for its turn and its log for at most three minutes; then the job is cancelled and all of it removed. Where nodes cost money by use, so does this.'
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
        {trans.__('Run a Tiny Job')}
      </button>
    </section>
  );
}
