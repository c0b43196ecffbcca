import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { gpuName } from '../clusters/devices';
import { useTick } from '../components/useTick';
import { durationText } from '../components/words';
import { estimateWords } from '../cost/estimate';
import { SubmitModel } from './model';
import { FRESH_MS, gpuModel, startOf } from './starting';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
  /** Go to a field. */
  readonly jump: (path: string) => void;
}

/**
 * One line: whether it can be sent, how big it is, and whether it would start.
 */
export function StatusLine(props: IProps): JSX.Element {
  const { jump, model, trans } = props;
  useTick(model.overview !== null);
  const [first] = Object.keys(model.problems);
  const level = levelOf(model);
  return (
    <div className="jp-HyperPod-StatusLine" data-level={level}>
      <span className="jp-HyperPod-StatusLine-state" role="status">
        <span aria-hidden="true">{SIGNS[level]}</span> {stateWords(props)}
      </span>
      {first !== undefined && !isEmpty(model) && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => jump(first)}
        >
          {trans.__('Go to field')}
        </button>
      )}
      {first === undefined && <span>{sizeWords(props)}</span>}
      <StartWords {...props} />
      <CostWords {...props} />
      {model.isBlocked && first === undefined && !model.isDistrusted && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => model.recheck()}
        >
          {trans.__('Check again')}
        </button>
      )}
    </div>
  );
}

/** Code of the finding that the cluster did not check the run. */
const UNCHECKED = 'unchecked';

const SIGNS = { ok: '✓', busy: '○', error: '✗' } as const;

function levelOf(model: SubmitModel): keyof typeof SIGNS {
  if (isEmpty(model)) {
    return 'busy';
  }
  if (model.isBlocked) {
    return 'error';
  }
  return model.busy || model.sending || isUnchecked(model) ? 'busy' : 'ok';
}

/** Whether the cluster did not check the run. */
function isUnchecked({ error, findings }: SubmitModel): boolean {
  return error !== null || findings.some(({ code }) => code === UNCHECKED);
}

/** Nothing was said yet of what is to be run: that is no mistake. */
function isEmpty(model: SubmitModel): boolean {
  const { path, spec } = model.source;
  return (
    model.problemCount === 1 &&
    'source' in model.problems &&
    !(path ?? spec.command)
  );
}

function stateWords({ model, trans }: IProps): string {
  const count = model.problemCount;
  if (model.sending) {
    return trans.__('Submitting…');
  }
  if (isEmpty(model)) {
    return model.problems.source;
  }
  if (count > 0) {
    return trans._n('Fix %1 field', 'Fix %1 fields', count);
  }
  if (model.isDistrusted) {
    return trans.__('The cluster checks the run after you confirm.');
  }
  if (model.busy) {
    return trans.__('Checking…');
  }
  if (model.isBlocked) {
    return trans.__('Cannot be submitted yet');
  }
  return isUnchecked(model)
    ? trans.__('The cluster did not answer')
    : trans.__('Ready to submit');
}

function sizeWords({ model, trans }: IProps): string {
  const { gpus, nodes, ranks } = model.size;
  const count = nodes * ranks;
  const total = nodes * gpus;
  if (total === 0) {
    return trans._n('%1 rank, no GPU', '%1 ranks, no GPU', count);
  }
  const type = gpuModel(model.overview, model.queue);
  const unit = type === null ? trans._n('GPU', 'GPUs', total) : gpuName(type);
  return trans._n('%1 rank on %2 %3', '%1 ranks on %2 %3', count, total, unit);
}

/** Whether it would start: said of fresh data only. */
function StartWords({ model, trans }: IProps): JSX.Element | null {
  const { overview } = model;
  if (!overview || model.problemCount > 0) {
    return null;
  }
  const age = model.availability.age(model.draft.cluster);
  if (age > FRESH_MS) {
    const since = new Date(Date.now() - age).toISOString();
    return (
      <span className="jp-HyperPod-StatusLine-old">
        {trans.__('free resources %1 ago', durationText(since, null, trans))}{' '}
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => model.recheck()}
        >
          {trans.__('Refresh')}
        </button>
      </span>
    );
  }
  const words = startWords(model, trans);
  return words === null ? null : <span>{words}</span>;
}

/** What it would cost; the hint tells by which prices. */
function CostWords({ model, trans }: IProps): JSX.Element | null {
  const cost = model.isStale ? null : (model.preview?.cost ?? null);
  const words = cost && estimateWords(cost, trans);
  return words && <span title={words.hint || undefined}>{words.text}</span>;
}

function startWords(
  model: SubmitModel,
  trans: TranslationBundle
): string | null {
  const { overview, queue, size } = model;
  const start = overview && startOf(overview, queue, size);
  switch (start?.kind) {
    case 'now':
      return trans.__('would start now');
    case 'closed':
      return trans.__('would wait: the queue starts no jobs');
    case 'behind':
      return trans._n(
        'fits now, but %1 job waits in the queue',
        'fits now, but %1 jobs wait in the queue',
        start.jobs
      );
    case 'waits':
      return {
        gpus: trans.__('would wait for free GPUs'),
        nodes: trans.__('would wait for free nodes'),
        slots: trans.__('would wait for a free slot')
      }[start.for];
    default:
      return null;
  }
}
