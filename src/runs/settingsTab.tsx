import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { isRecord } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { LoadedText } from '../components/loadedText';
import { useLoaded } from '../components/useLoaded';
import { bytesText } from '../components/words';
import { IRunClient } from './client';
import { spanText } from './words';

type Shown = 'table' | 'script' | 'json';

/**
 * What a run was asked for.
 */
export function Settings(props: {
  client: Pick<IRunClient, 'spec' | 'script'>;
  runId: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, runId, trans } = props;
  const [shown, setShown] = React.useState<Shown>('table');
  const loadSpec = React.useCallback(() => client.spec(runId), [client, runId]);
  const loadScript = React.useCallback(
    async () => (await client.script(runId)).text,
    [client, runId]
  );
  const { error, retry, value } = useLoaded(loadSpec);
  const json = React.useCallback(
    () => Promise.resolve(JSON.stringify(value, null, 2)),
    [value]
  );
  const labels: readonly (readonly [Shown, string])[] = [
    ['table', trans.__('Settings')],
    ['script', trans.__('Script')],
    ['json', trans.__('JSON')]
  ];
  return (
    <div className="jp-HyperPod-Settings">
      <div role="group" aria-label={trans.__('Show')}>
        {labels.map(([name, label]) => (
          <button
            key={name}
            type="button"
            className="jp-HyperPod-button"
            aria-pressed={shown === name}
            onClick={() => setShown(name)}
          >
            {label}
          </button>
        ))}
      </div>
      {error && <ErrorMessage error={error} trans={trans} retry={retry} />}
      {shown === 'script' && <LoadedText load={loadScript} trans={trans} />}
      {shown === 'json' && value && <LoadedText load={json} trans={trans} />}
      {shown === 'table' && value && <Table spec={value} trans={trans} />}
    </div>
  );
}

function Table(props: {
  spec: Readonly<Record<string, unknown>>;
  trans: TranslationBundle;
}): JSX.Element {
  const { spec, trans } = props;
  const settings = settingsOf(spec, trans);
  return (
    <table className="jp-HyperPod-Settings-table">
      <tbody>
        {settings.map(({ name, path, value }) => (
          <tr key={path}>
            <th scope="row" title={path}>
              {name}
            </th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/**
 * A setting in words.
 */
export interface ISetting {
  /** Its place in the spec. */
  readonly path: string;
  readonly name: string;
  readonly value: string;
}

/** A spec's settings that say something, the ones that matter most first. */
export function settingsOf(
  spec: Readonly<Record<string, unknown>>,
  trans: TranslationBundle
): readonly ISetting[] {
  const names = settingNames(trans);
  const order = Object.keys(names);
  const place = (path: string) => {
    const at = order.indexOf(path);
    return at < 0 ? order.length : at;
  };
  return leaves(spec, '')
    .filter(([path, value]) => path !== 'format' && !isNothing(path, value))
    .map(([path, value]) => ({
      path,
      name: names[path] ?? path,
      value: valueText(path, value, trans)
    }))
    .sort((one, other) => place(one.path) - place(other.path));
}

/** All leaves of a spec; lists and maps of the user are kept whole. */
function leaves(value: unknown, path: string): [string, unknown][] {
  const isMap = /\.(variables|secrets|flags|patch)$/.test(path);
  if (!isRecord(value) || isMap) {
    return [[path, value]];
  }
  return Object.entries(value).flatMap(([name, part]) =>
    leaves(part, path === '' ? name : `${path}.${name}`)
  );
}

/** What was not set; a switch that is off is worth a word only where it is on by default. */
function isNothing(path: string, value: unknown): boolean {
  return (
    (value === false && path !== 'files.project') ||
    (value === 0 && path === 'max_restarts') ||
    value === null ||
    value === undefined ||
    value === '' ||
    (Array.isArray(value) && value.length === 0) ||
    (isRecord(value) && Object.keys(value).length === 0)
  );
}

function valueText(
  path: string,
  value: unknown,
  trans: TranslationBundle
): string {
  if (typeof value === 'number') {
    if (path === 'time_limit' || path === 'stop_grace') {
      return spanText(value, trans);
    }
    return path === 'resources.memory' || path === 'files.max_bytes'
      ? bytesText(value)
      : String(value);
  }
  if (typeof value === 'boolean') {
    return value ? trans.__('yes') : trans.__('no');
  }
  if (Array.isArray(value)) {
    return value
      .map(item => (isRecord(item) ? JSON.stringify(item) : String(item)))
      .join(' ');
  }
  if (isRecord(value)) {
    return Object.entries(value)
      .map(([name, part]) =>
        part === null || part === '' ? name : `${name}=${textOf(part)}`
      )
      .join('\n');
  }
  return String(value);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The names of settings, in the order in which they are shown. */
function settingNames(trans: TranslationBundle): Record<string, string> {
  return {
    'source.kind': trans.__('Source'),
    'source.path': trans.__('File'),
    'source.cells': trans.__('Cells'),
    'source.tag': trans.__('Cell tag'),
    'source.command': trans.__('Command'),
    'source.module': trans.__('Module'),
    'source.qualname': trans.__('Function'),
    name: trans.__('Name'),
    args: trans.__('Arguments'),
    queue: trans.__('Queue'),
    time_limit: trans.__('Time limit'),
    'resources.nodes': trans.__('Nodes'),
    'resources.processes_per_node': trans.__('Processes per node'),
    'resources.gpus_per_node': trans.__('GPUs per node'),
    'resources.accelerators.count': trans.__('Accelerators per node'),
    'resources.accelerators.kind': trans.__('Accelerator kind'),
    'resources.accelerators.type': trans.__('Accelerator model'),
    'resources.cpus': trans.__('CPUs per node'),
    'resources.memory': trans.__('Memory per node'),
    'resources.instance_type': trans.__('Instance type'),
    'resources.instance_group': trans.__('Instance group'),
    'resources.efa': trans.__('EFA interfaces per node'),
    launcher: trans.__('Launcher'),
    'environment.python': trans.__('Python'),
    'environment.image': trans.__('Container image'),
    'environment.capture': trans.__('Packages from'),
    'environment.variables': trans.__('Environment variables'),
    'environment.secrets': trans.__('Secrets'),
    'environment.setup': trans.__('Setup commands'),
    ...moreNames(trans)
  };
}

function moreNames(trans: TranslationBundle): Record<string, string> {
  return {
    account: trans.__('Account'),
    qos: trans.__('Quality of service'),
    priority: trans.__('Priority'),
    array: trans.__('Array'),
    after: trans.__('Runs to wait for'),
    max_restarts: trans.__('Restarts after failure'),
    auto_resume: trans.__('Resume after node failure'),
    stop_grace: trans.__('Grace period'),
    forward_signals: trans.__('Signals before the time limit'),
    'slurm.flags': trans.__('sbatch options'),
    'kubernetes.kind': trans.__('Object kind'),
    'kubernetes.namespace': trans.__('Namespace'),
    'kubernetes.service_account': trans.__('Service account'),
    'kubernetes.patch': trans.__('Manifest patch'),
    'files.project': trans.__('Include project files'),
    'files.root': trans.__('Project folder'),
    'files.include': trans.__('More files'),
    'files.max_bytes': trans.__('Size limit of files'),
    'source.cell_ids': trans.__('Cell ids')
  };
}
