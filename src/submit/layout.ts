import { IField, PARAMETERS } from './fields';

/** The fields that are always there, beside source and cluster, in their order. */
export const MAIN_FIELDS: readonly string[] = [
  'queue',
  'resources.nodes',
  'resources.gpus_per_node',
  'resources.processes_per_node',
  'time_limit',
  'name'
];

/** Top-level fields that say what runs; the others say when and where. */
const PROGRAM = ['args', 'launcher'];

/** Fields, or groups of them, that an orchestrator does not use. The server reports them too, as findings. */
const NOT_UNDERSTOOD: Readonly<Record<string, readonly string[]>> = {
  slurm: [
    'kubernetes',
    'resources.instance_type',
    'resources.instance_group',
    'resources.efa'
  ],
  kubernetes: ['slurm', 'account', 'qos', 'after'],
  local: [
    'kubernetes',
    'slurm',
    'queue',
    'account',
    'qos',
    'priority',
    'auto_resume',
    'resources.memory',
    'resources.instance_type',
    'resources.instance_group',
    'resources.efa'
  ]
};

/** Whether a field is always there. */
export function isMain(path: string): boolean {
  return MAIN_FIELDS.includes(path);
}

/** Whether a kind of cluster has a use for a field. */
export function isUnderstood(path: string, orchestrator: string): boolean {
  const not = NOT_UNDERSTOOD[orchestrator] ?? [];
  return !not.some(one => path === one || path.startsWith(`${one}.`));
}

/** The group of a field that is not always there. */
export function groupOf(path: string): string {
  const [first, ...rest] = path.split('.');
  if (rest.length > 0 && path !== PARAMETERS) {
    return first;
  }
  return [...PROGRAM, 'source'].includes(first) ? 'program' : 'scheduling';
}

/** The groups with their fields: those that the cluster understands, and those that say something all the same. */
export function groupsOf(
  fields: readonly IField[],
  shown: (field: IField) => boolean
): readonly (readonly [string, readonly IField[]])[] {
  const order = ['program', 'environment', 'files', 'resources', 'scheduling'];
  const groups = new Map<string, IField[]>(order.map(name => [name, []]));
  for (const field of fields) {
    if (!isMain(field.path) && shown(field)) {
      const group = groupOf(field.path);
      groups.set(group, [...(groups.get(group) ?? []), field]);
    }
  }
  return [...groups].filter(([, found]) => found.length > 0);
}
