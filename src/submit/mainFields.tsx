import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { gpuName } from '../clusters/devices';
import { isOverruled, takesParameters } from './draft';
import { FieldRow } from './fieldRow';
import { IField, PARAMETERS } from './fields';
import { labelOf } from './labels';
import { isUnderstood } from './layout';
import { SubmitModel } from './model';
import { secondsIn, written } from './quantities';
import { freeGpus, gpuModel, mostGpus } from './starting';
import { byOne, gpuSteps, Stepper } from './stepper';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
}

/** Time limits that are one click away. */
const LIMITS = ['10m', '30m', '1h', '4h'];

/** Where no node's number of GPUs is known. */
const USUAL_GPUS = 8;

/**
 * Where a run goes and how big it is: what everyone looks at before a submit.
 */
export function MainFields(props: IProps): JSX.Element {
  return (
    <>
      <div className="jp-HyperPod-FieldGrid" data-columns="2">
        <ClusterField {...props} />
        <QueueField {...props} />
      </div>
      <div className="jp-HyperPod-Size">
        <div className="jp-HyperPod-FieldGrid" data-columns="3">
          <NumberField {...props} path="resources.nodes" />
          <NumberField {...props} path="resources.gpus_per_node" />
          <NumberField {...props} path="resources.processes_per_node" />
        </div>
        <Sizes {...props} />
      </div>
      <div className="jp-HyperPod-FieldGrid" data-columns="2">
        <TimeField {...props} />
        <TextField {...props} path="name" />
      </div>
    </>
  );
}

function ClusterField({ model, trans }: IProps): JSX.Element {
  const id = React.useId();
  return (
    <div className="jp-HyperPod-FieldRow">
      <label htmlFor={id}>{trans.__('Cluster')}</label>
      <select
        id={id}
        className="jp-HyperPod-select"
        data-field="cluster"
        value={model.draft.cluster ?? ''}
        onChange={event => model.setCluster(event.target.value)}
      >
        {model.clusters.map(({ name, state }) => (
          <option key={name} value={name}>
            {state === 'down'
              ? trans.__('%1 — does not respond', name)
              : withFree(name, clusterFree(name, model, trans))}
          </option>
        ))}
      </select>
    </div>
  );
}

function clusterFree(
  name: string,
  model: SubmitModel,
  trans: TranslationBundle
): string {
  const { gpus = [], queues = [] } = model.availability.of(name) ?? {};
  if (gpus.length > 0) {
    return gpus
      .map(({ free, total, type }) =>
        trans.__('%1 of %2 %3 free', free, total, unitName(type, trans))
      )
      .join(', ');
  }
  const [queue] = queues;
  return queue ? queueFree(queue, null, trans) : '';
}

function QueueField({ model, trans }: IProps): JSX.Element | null {
  const field = model.field('queue');
  if (!field || !isUsed(field, model)) {
    return null;
  }
  const text = model.texts.queue ?? '';
  const queues = model.overview?.queues ?? [];
  const names = new Set([
    ...queues.map(queue => queue.name),
    ...(model.choices.queue ?? []),
    ...(text === '' ? [] : [text])
  ]);
  const free = new Map(
    queues.map(queue => [
      queue.name,
      queueFree(queue, gpuModel(model.overview, queue), trans)
    ])
  );
  const standard = queues.find(queue => queue.default)?.name;
  return (
    <FieldRow
      field={field}
      problem={model.problems.queue}
      trans={trans}
      input={({ describedBy, id, invalid }) => (
        <select
          id={id}
          data-field="queue"
          className="jp-HyperPod-select"
          aria-describedby={describedBy}
          aria-invalid={invalid}
          value={text}
          onChange={event => model.set({ queue: event.target.value })}
        >
          <option value="">
            {standard === undefined
              ? trans.__('Default')
              : withFree(
                  trans.__('%1 (default)', standard),
                  free.get(standard) ?? ''
                )}
          </option>
          {[...names]
            .filter(name => name !== standard || name === text)
            .map(name => (
              <option key={name} value={name}>
                {withFree(name, free.get(name) ?? '')}
              </option>
            ))}
        </select>
      )}
    />
  );
}

/** What a queue has free, in words. */
function queueFree(
  queue: Parameters<typeof freeGpus>[0],
  type: string | null,
  trans: TranslationBundle
): string {
  const gpus = freeGpus(queue);
  if (gpus) {
    const unit = unitName(type, trans);
    return trans.__('%1 of %2 %3 free', gpus.free, gpus.total, unit);
  }
  if (queue.slots !== null) {
    return trans.__('%1 of %2 slots free', queue.slots_free ?? 0, queue.slots);
  }
  return queue.nodes !== null && queue.nodes_free !== null
    ? trans.__('%1 of %2 nodes free', queue.nodes_free, queue.nodes)
    : '';
}

function unitName(type: string | null, trans: TranslationBundle): string {
  return type === null ? trans.__('GPUs') : gpuName(type);
}

function withFree(name: string, free: string): string {
  return free === '' ? name : `${name} — ${free}`;
}

function NumberField(props: IProps & { path: string }): JSX.Element | null {
  const { model, path, trans } = props;
  const field = model.field(path);
  if (!field) {
    return null;
  }
  const { gpus, nodes, ranks } = model.size;
  const most = mostGpus(model.overview) || USUAL_GPUS;
  const highest = field.maximum ?? Number.MAX_SAFE_INTEGER;
  const [effective, placeholder, next] =
    path === 'resources.nodes'
      ? [nodes, '1', byOne(1, highest)]
      : path === 'resources.gpus_per_node'
        ? [gpus, '0', gpuSteps(most)]
        : [ranks, trans.__('auto (%1)', ranks), byOne(1, highest)];
  return (
    <FieldRow
      field={field}
      problem={model.problems[path]}
      trans={trans}
      input={({ describedBy, id, invalid }) => (
        <Stepper
          id={id}
          path={path}
          label={labelOf(field, trans)}
          text={model.texts[path] ?? ''}
          effective={effective}
          placeholder={placeholder}
          next={next}
          invalid={invalid}
          disabled={isOverruled(model.draft, path)}
          describedBy={describedBy}
          trans={trans}
          onChange={text => model.set({ [path]: text })}
        />
      )}
    />
  );
}

/** Sizes that people use, on clusters with GPUs. */
function Sizes({ model, trans }: IProps): JSX.Element | null {
  const most = mostGpus(model.overview);
  if (most === 0 || model.draft.smoke) {
    return null;
  }
  const { gpus, nodes } = model.size;
  const total = model.queue?.nodes ?? model.overview?.nodes.length ?? 1;
  const sizes = [
    { nodes: 1, gpus: 1 },
    ...[1, 2, 4, 8].map(count => ({ nodes: count, gpus: most }))
  ].filter(
    (one, at, all) =>
      one.nodes <= total &&
      all.findIndex(
        other => other.nodes === one.nodes && other.gpus === one.gpus
      ) === at
  );
  return (
    <Chips
      label={trans.__('Size')}
      chips={sizes.map(one => ({
        key: `${one.nodes}x${one.gpus}`,
        label:
          one.nodes === 1
            ? one.gpus === 1
              ? trans.__('1 GPU')
              : trans.__('%1 GPUs', one.gpus)
            : trans.__('%1 × %2 GPUs', one.nodes, one.gpus),
        isOn: one.nodes === nodes && one.gpus === gpus,
        choose: () =>
          model.set({
            'resources.nodes': String(one.nodes),
            'resources.gpus_per_node': String(one.gpus),
            'resources.processes_per_node': ''
          })
      }))}
    />
  );
}

function TimeField({ model, trans }: IProps): JSX.Element | null {
  const field = model.field('time_limit');
  if (!field) {
    return null;
  }
  const text = model.texts.time_limit ?? '';
  const isOff = isOverruled(model.draft, 'time_limit');
  const most = model.queue?.time_limit ?? Infinity;
  const limits = LIMITS.filter(limit => (secondsIn(limit) ?? 0) <= most);
  return (
    <FieldRow
      field={field}
      problem={model.problems.time_limit}
      trans={trans}
      input={({ describedBy, id, invalid }) => (
        <>
          <span className="jp-HyperPod-TimeLimit">
            <input
              id={id}
              data-field="time_limit"
              type="text"
              autoComplete="off"
              spellCheck={false}
              className="jp-HyperPod-input"
              aria-describedby={describedBy}
              aria-invalid={invalid}
              disabled={isOff}
              placeholder={standardLimit(model, trans)}
              value={text}
              onChange={event => model.set({ time_limit: event.target.value })}
            />
            {!isOff && (
              <Chips
                label={trans.__('Time limits')}
                chips={limits.map(limit => ({
                  key: limit,
                  label: limit,
                  isOn: text === limit,
                  choose: () => model.set({ time_limit: limit })
                }))}
              />
            )}
          </span>
          <Seconds text={text} trans={trans} />
        </>
      )}
    />
  );
}

/** Users of Slurm write minutes where a number means seconds. Less than a minute has a warning of its own. */
function Seconds(props: {
  text: string;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { text, trans } = props;
  const seconds = /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : 0;
  return seconds < 60 ? null : (
    <span className="jp-HyperPod-TimeLimit-seconds">
      {trans.__('%1 seconds. For minutes, type %2m.', seconds, seconds)}
    </span>
  );
}

/** The limit of a run that sets none. */
function standardLimit(model: SubmitModel, trans: TranslationBundle): string {
  const { default_time: standard = null, time_limit: most = null } =
    model.queue ?? {};
  const seconds = standard ?? most;
  return seconds === null ? trans.__('none') : written('duration', seconds);
}

function TextField(props: IProps & { path: string }): JSX.Element | null {
  const { model, path, trans } = props;
  const field = model.field(path);
  return (
    field && (
      <FieldRow
        field={field}
        problem={model.problems[path]}
        trans={trans}
        input={({ describedBy, id, invalid }) => (
          <input
            id={id}
            data-field={path}
            type="text"
            autoComplete="off"
            spellCheck={false}
            className="jp-HyperPod-input"
            aria-describedby={describedBy}
            aria-invalid={invalid}
            placeholder={model.preview?.name ?? ''}
            value={model.texts[path] ?? ''}
            onChange={event => model.set({ [path]: event.target.value })}
          />
        )}
      />
    )
  );
}

/** Whether a field is shown: the cluster understands it, or it says something. */
export function isUsed(field: IField, model: SubmitModel): boolean {
  if (field.path === PARAMETERS) {
    return takesParameters(model.source);
  }
  return (
    isUnderstood(field.path, model.orchestrator) ||
    (model.texts[field.path] ?? '').trim() !== ''
  );
}

function Chips(props: {
  label: string;
  chips: readonly {
    readonly key: string;
    readonly label: string;
    readonly isOn: boolean;
    readonly choose: () => void;
  }[];
}): JSX.Element {
  return (
    <span role="group" aria-label={props.label} className="jp-HyperPod-Chips">
      {props.chips.map(chip => (
        <button
          key={chip.key}
          type="button"
          className="jp-HyperPod-Choice"
          aria-pressed={chip.isOn}
          onClick={chip.choose}
        >
          {chip.label}
        </button>
      ))}
    </span>
  );
}
