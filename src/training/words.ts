import { TranslationBundle } from '@jupyterlab/translation';

import { spanText } from '../runs/words';
import { IMetricSummary, IRunAlarm, IRunNumbers } from './client';
import { numberText } from './curveData';

/** The value of the course that lists show: loss 0.031; empty where there is none. */
export function newestText(numbers: IRunNumbers): string {
  const { course_name: name } = numbers;
  const value = name === null ? null : newestValue(numbers, name);
  return value === null ? '' : `${name} ${numberText(value)}`;
}

/** The newest value of a name, NaN where it is not finite; null where the run does not have it. */
export function newestValue(
  { summary }: IRunNumbers,
  name: string
): number | null {
  const newest = summary.metrics[name];
  return newest === undefined ? null : (newest.value ?? NaN);
}

/** How far a run is: step 120 of 1000; empty where it is unknown. */
export function stepText(
  { progress }: IMetricSummary,
  trans: TranslationBundle
): string {
  if (!progress) {
    return '';
  }
  return progress.total === null
    ? trans.__('step %1', progress.step)
    : trans.__('step %1 of %2', progress.step, progress.total);
}

/** The time left: 12 min left; empty where it is unknown. */
export function leftText(
  { progress }: IMetricSummary,
  trans: TranslationBundle
): string {
  const seconds = progress?.seconds_left ?? null;
  return seconds === null ? '' : trans.__('%1 left', spanText(seconds, trans));
}

/** An alarm in a few words. */
export function alarmText(alarm: IRunAlarm, trans: TranslationBundle): string {
  const titles: Readonly<Record<IRunAlarm['code'], string>> = {
    nan: trans.__('Loss is not finite'),
    spike: trans.__('Loss has jumped'),
    hang: trans.__('Run hangs')
  };
  const { code, message, rank } = alarm;
  return rank === null
    ? trans.__('%1: %2', titles[code], message)
    : trans.__('%1: rank %2, %3', titles[code], rank, message);
}
