import { Clipboard } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IReach } from './types';

/** Whether one can submit to a cluster from the server's machine, in a few words. */
export function reachText(word: string, trans: TranslationBundle): string {
  switch (word) {
    case 'configured':
      return trans.__('in the configuration');
    case 'ready':
      return trans.__('can be added to the configuration');
    case 'not-looked':
      return trans.__('not looked yet whether one can submit from here');
    case 'not-described':
      return trans.__('not known whether one can submit from here');
    case 'not-in-service':
      return trans.__('not in service');
    case 'unknown-orchestrator':
      return trans.__('scheduler unknown');
    case 'no-file-system':
      return trans.__('its file system is missing here');
    case 'other-partition':
      return trans.__('the storage partition is elsewhere');
    case 'no-login-node':
      return trans.__('no login node is configured');
    case 'no-controller':
      return trans.__('Slurm does not answer');
    case 'no-right':
      return trans.__('a right is missing');
    case 'not-there':
      return trans.__('its EKS cluster is not there');
    case 'no-way':
      return trans.__('not reached from here');
    case 'not-let-in':
      return trans.__('it does not let you in');
    case 'no-namespace':
      return trans.__('name your namespace');
    case 'no-package':
      return trans.__('a package is missing');
    case 'not-known':
      return trans.__('not known whether one can submit from here');
    default:
      return word;
  }
}

/**
 * Whether one can submit to a cluster from here: the one thing that is missing, what to do about it, and what belongs into the configuration file.
 */
export function ReachNote(props: {
  reach: IReach;
  trans: TranslationBundle;
}): JSX.Element {
  const { reach, trans } = props;
  const { config, nextStep, sentence, word } = reach;
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
