import { TranslationBundle } from '@jupyterlab/translation';

import { IField } from './fields';

/** A field's name for people; fields that are newer than this page have the schema's own. */
export function labelOf(field: IField, trans: TranslationBundle): string {
  return labels(trans)[field.path] ?? field.title;
}

/** A group of fields: the first part of their paths. */
export function groupLabel(group: string, trans: TranslationBundle): string {
  const names: Readonly<Record<string, string>> = {
    program: trans.__('Program'),
    scheduling: trans.__('Scheduling'),
    files: trans.__('Files'),
    resources: trans.__('Resources'),
    environment: trans.__('Environment'),
    slurm: trans.__('Slurm'),
    kubernetes: trans.__('Kubernetes'),
    mlflow: trans.__('MLflow'),
    alarms: trans.__('Alarms')
  };
  return names[group] ?? group;
}

/** The names in each language that was asked for: they are needed at every key that is pressed. */
const tables = new WeakMap<
  TranslationBundle,
  Readonly<Record<string, string>>
>();

function labels(trans: TranslationBundle): Readonly<Record<string, string>> {
  let table = tables.get(trans);
  if (!table) {
    table = {
      ...resources(trans),
      ...surroundings(trans),
      ...scheduling(trans)
    };
    tables.set(trans, table);
  }
  return table;
}

function resources(trans: TranslationBundle): Record<string, string> {
  return {
    'resources.nodes': trans.__('Nodes'),
    'resources.processes_per_node': trans.__('Ranks per node'),
    'resources.gpus_per_node': trans.__('GPUs per node'),
    'resources.accelerators.kind': trans.__('Accelerator kind'),
    'resources.accelerators.type': trans.__('Accelerator model'),
    'resources.accelerators.count': trans.__('Accelerators per node'),
    'resources.cpus': trans.__('CPUs per node'),
    'resources.memory': trans.__('Memory per node'),
    'resources.instance_type': trans.__('Instance type'),
    'resources.instance_group': trans.__('Instance group'),
    'resources.efa': trans.__('EFA interfaces per node')
  };
}

function surroundings(trans: TranslationBundle): Record<string, string> {
  return {
    'files.project': trans.__('Include project files'),
    'files.root': trans.__('Project folder'),
    'files.include': trans.__('More files'),
    'files.max_bytes': trans.__('Size limit in bytes'),
    'environment.python': trans.__('Python on the cluster'),
    'environment.image': trans.__('Container image'),
    'environment.capture': trans.__('Packages from'),
    'environment.variables': trans.__('Environment variables'),
    'environment.secrets': trans.__('Secrets'),
    'environment.setup': trans.__('Setup commands'),
    'slurm.flags': trans.__('sbatch options'),
    'kubernetes.kind': trans.__('Object kind'),
    'kubernetes.namespace': trans.__('Namespace'),
    'kubernetes.service_account': trans.__('Service account'),
    'kubernetes.topology.level': trans.__('Topology level'),
    'kubernetes.topology.mode': trans.__('Topology mode'),
    'kubernetes.keep_companions': trans.__('Keep other objects'),
    'kubernetes.patch': trans.__('Manifest patch'),
    'mlflow.tracking_uri': trans.__('Tracking URI'),
    'mlflow.run_name': trans.__('Run name')
  };
}

function scheduling(trans: TranslationBundle): Record<string, string> {
  return {
    name: trans.__('Display name'),
    args: trans.__('Arguments'),
    'source.parameters': trans.__('Parameters'),
    launcher: trans.__('Launcher'),
    queue: trans.__('Queue'),
    account: trans.__('Account'),
    qos: trans.__('Quality of service'),
    priority: trans.__('Priority'),
    time_limit: trans.__('Time limit'),
    max_restarts: trans.__('Restarts after failure'),
    auto_resume: trans.__('Resume after node failure'),
    stop_grace: trans.__('Grace period'),
    forward_signals: trans.__('Signals before the time limit'),
    after: trans.__('Runs to wait for'),
    array: trans.__('Array')
  };
}
