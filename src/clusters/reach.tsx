import { Clipboard } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IReach } from './awsTypes';

/** The word for a cluster that only the configuration lacks. */
const READY = 'ready';

/** Whether one can submit to a cluster from the server's machine, in a few words. */
export function reachText(word: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    configured: trans.__('configured'),
    ready: trans.__('ready to configure'),
    'not-looked': trans.__('connection not checked'),
    'not-described': trans.__('connection unknown'),
    'not-in-service': trans.__('not in service'),
    'unknown-orchestrator': trans.__('unknown orchestrator'),
    'no-file-system': trans.__('file system not mounted here'),
    'other-partition': trans.__('storage partition on another file system'),
    'no-login-node': trans.__('no login node configured'),
    'no-controller': trans.__('Slurm does not respond'),
    'no-right': trans.__('missing permission'),
    'not-there': trans.__('EKS cluster not found'),
    'no-way': trans.__('not reachable'),
    'not-let-in': trans.__('access denied'),
    'no-namespace': trans.__('namespace required'),
    'no-package': trans.__('missing package'),
    'not-known': trans.__('connection unknown')
  };
  return texts[word] ?? word;
}

/**
 * Whether one can submit to a cluster from here: the one thing that is missing, what to do about it, and what belongs into the configuration file.
 */
export function ReachNote(props: {
  reach: IReach;
  /** Write the cluster into the configuration. */
  connect: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { connect, reach, trans } = props;
  const { config, next_step: nextStep, sentence, word } = reach;
  return (
    <section
      className="jp-HyperPod-Reach"
      aria-label={trans.__('Submit from here')}
    >
      <h2>{trans.__('Submit from here')}</h2>
      <p data-reach={word}>
        <strong>{reachText(word, trans)}</strong>
        {' – '}
        {sentence}
      </p>
      {word === READY ? (
        <button
          type="button"
          className="jp-HyperPod-button jp-mod-accept"
          onClick={connect}
        >
          {trans.__('Connect…')}
        </button>
      ) : (
        nextStep && (
          <p>
            {trans.__('Next step:')} {nextStep}
          </p>
        )
      )}
      {config && <ConfigBlock config={config} trans={trans} />}
    </section>
  );
}

function ConfigBlock(props: {
  config: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { config, trans } = props;
  return (
    <details>
      <summary>{trans.__('Configuration file entry')}</summary>
      <pre tabIndex={0} aria-label={trans.__('Configuration file entry')}>
        {config}
      </pre>
      <button
        type="button"
        className="jp-HyperPod-button"
        onClick={() => Clipboard.copyToSystem(config)}
      >
        {trans.__('Copy')}
      </button>
    </details>
  );
}
