import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { bytesText, numberText } from '../components/words';
import { IRun, isEnded } from './types';
import { IUsage } from './client';

const HOUR = 3600;

interface IProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Asks the server. */
  readonly load: () => Promise<IUsage | null>;
}

/**
 * What a run that has ended used, and who says so.
 */
export function UsedByRun(props: IProps): JSX.Element | null {
  return isEnded(props.run.state) ? <Amounts {...props} /> : null;
}

function Amounts({ load, run, trans }: IProps): JSX.Element | null {
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  const facts = value ? factsOf(value, trans) : [];
  if (value === null || facts.length === 0) {
    return null;
  }
  return (
    <section className="jp-HyperPod-Usage">
      <h2>
        {trans.__('Usage')}
        <span className="jp-HyperPod-Usage-source">
          {value.source === 'accounting'
            ? trans.__('from the scheduler’s accounting')
            : run.orchestrator === 'slurm'
              ? trans.__('measured by the launcher; Slurm accounting is off')
              : trans.__('measured by the launcher')}
        </span>
      </h2>
      <dl className="jp-HyperPod-facts" aria-label={trans.__('Usage')}>
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function factsOf(used: IUsage, trans: TranslationBundle): [string, string][] {
  const {
    accelerator_seconds: acceleratorSeconds,
    cpu_seconds: cpuSeconds,
    accelerator_kind: kind,
    max_memory: maxMemory,
    signal
  } = used;
  const facts: [string, string][] = [];
  if (used.exit_code !== null) {
    facts.push([trans.__('Exit code'), String(used.exit_code)]);
  }
  if (acceleratorSeconds) {
    facts.push([
      kind === 'gpu' ? trans.__('GPU-hours') : trans.__('Accelerator-hours'),
      numberText(acceleratorSeconds / HOUR)
    ]);
  }
  if (cpuSeconds !== null && cpuSeconds >= HOUR / 100) {
    facts.push([trans.__('CPU-hours'), numberText(cpuSeconds / HOUR)]);
  }
  if (maxMemory) {
    facts.push([trans.__('Peak memory'), bytesText(maxMemory)]);
  }
  if (signal !== null) {
    facts.push([trans.__('Signal'), String(signal)]);
  }
  return facts;
}
