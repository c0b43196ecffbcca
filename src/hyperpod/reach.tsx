import { Clipboard } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IReach } from './types';

/** Whether one can submit to a cluster from the server's machine, in a few words. */
export function reachText(word: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    configured: trans.__('in the configuration'),
    ready: trans.__('can be added to the configuration'),
    'not-looked': trans.__('not looked yet whether one can submit from here'),
    'not-described': trans.__('not known whether one can submit from here'),
    'not-in-service': trans.__('not in service'),
    'unknown-orchestrator': trans.__('scheduler unknown'),
    'no-file-system': trans.__('its file system is missing here'),
    'other-partition': trans.__('the storage partition is elsewhere'),
    'no-login-node': trans.__('no login node is configured'),
    'no-controller': trans.__('Slurm does not answer'),
    'no-right': trans.__('a right is missing'),
    'not-there': trans.__('its EKS cluster is not there'),
    'no-way': trans.__('not reached from here'),
    'not-let-in': trans.__('it does not let you in'),
    'no-namespace': trans.__('name your namespace'),
    'no-package': trans.__('a package is missing'),
    'not-known': trans.__('not known whether one can submit from here')
  };
  return texts[word] ?? word;
}

/**
 * Whether one can submit to a cluster from here: the one thing that is missing, what to do about it, and what belongs into the configuration file.
 */
export function ReachNote(props: {
  reach: IReach;
  trans: TranslationBundle;
}): JSX.Element {
  const { reach, trans } = props;
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
      {nextStep && (
        <p>
          {trans.__('Next:')} {nextStep}
        </p>
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
      <summary>{trans.__('For the configuration file')}</summary>
      <pre tabIndex={0} aria-label={trans.__('For the configuration file')}>
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
