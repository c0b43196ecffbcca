import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ErrorMessage } from '../components/errorMessage';
import { useLoaded } from '../components/useLoaded';
import { pageLanguage } from '../components/words';
import { IRun, isEnded } from './types';
import { IUsage } from './client';

const HOUR = 3600;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

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

function Amounts({ load, trans }: IProps): JSX.Element | null {
  const { error, retry, value } = useLoaded(load);
  if (error) {
    return <ErrorMessage error={error} trans={trans} retry={retry} />;
  }
  const facts = value ? factsOf(value, trans) : [];
  if (value === null || facts.length === 0) {
    return null;
  }
  return (
    <dl className="jp-HyperPod-facts" aria-label={trans.__('Usage')}>
      {facts.map(([name, text]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
      <div>
        <dt>{trans.__('Usage source')}</dt>
        <dd>
          {value.source === 'accounting'
            ? trans.__('scheduler accounting')
            : trans.__('launcher measurements (no scheduler accounting)')}
        </dd>
      </div>
    </dl>
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
  if (acceleratorSeconds) {
    facts.push([
      kind === 'gpu' ? trans.__('GPU-hours') : trans.__('Accelerator-hours'),
      numberText(acceleratorSeconds / HOUR)
    ]);
  }
  if (cpuSeconds) {
    facts.push([trans.__('CPU-hours'), numberText(cpuSeconds / HOUR)]);
  }
  if (maxMemory) {
    facts.push([trans.__('Peak memory'), memoryText(maxMemory, trans)]);
  }
  if (signal !== null) {
    facts.push([trans.__('Signal'), String(signal)]);
  }
  return facts;
}

/** Three digits that count. */
function numberText(value: number): string {
  const options = { maximumSignificantDigits: 3 };
  return new Intl.NumberFormat(pageLanguage(), options).format(value);
}

function memoryText(bytes: number, trans: TranslationBundle): string {
  return bytes < GIB
    ? trans.__('%1 MiB', numberText(bytes / MIB))
    : trans.__('%1 GiB', numberText(bytes / GIB));
}
