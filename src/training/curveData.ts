import { TranslationBundle } from '@jupyterlab/translation';

import type { IRunChart, IRunCurve } from '../runs/chartData';
import { ISeries } from './seriesModel';

/** Names that everybody looks at first, in this order. */
const FIRST = [
  'loss',
  'eval_loss',
  'accuracy',
  'learning_rate',
  'grad_norm',
  'tokens_per_second',
  'samples_per_second',
  'step_time'
];

/** Ranks that get a curve of their own; more are a band. */
const MAX_CURVES = 8;

/** How the curves are drawn. */
export interface ICurveView {
  readonly x: 'step' | 'time';
  readonly isLog: boolean;
  /** From 0 (as printed) to 0.99. */
  readonly smoothing: number;
}

/**
 * A line through all attempts of a rank, or of a run among others.
 */
export interface ICourse {
  readonly label: string;
  /** Place and value; the value is null where it was not finite. */
  readonly points: readonly (readonly [number, number | null])[];
  /** Where later attempts began. */
  readonly marks: readonly number[];
}

/** The names of the series, the most important first. The epoch is no curve. */
export function namesOf(
  series: readonly Pick<ISeries, 'name'>[]
): readonly string[] {
  const names = new Set(series.map(one => one.name));
  names.delete('epoch');
  const known = FIRST.filter(name => names.has(name));
  const others = [...names].filter(name => !FIRST.includes(name)).sort();
  return [...known, ...others];
}

/** The axis that fits: steps, where the trainer prints any. */
export function axisOf(series: readonly ISeries[]): 'step' | 'time' {
  return series.some(one => one.points.some(([step]) => step !== null))
    ? 'step'
    : 'time';
}

/** The attempts of a series as one course: where a later one repeats steps, it counts. */
export function courseOf(
  series: readonly ISeries[],
  x: ICurveView['x'],
  label: string
): ICourse {
  const points: (readonly [number, number | null])[] = [];
  const marks: number[] = [];
  const attempts = [...series].sort(
    (one, other) => one.attempt - other.attempt
  );
  attempts.forEach((one, at) => {
    const own = one.points.flatMap(([step, time, value]) => {
      const place = x === 'time' ? time : step;
      return place === null ? [] : [[place, value] as const];
    });
    if (own.length === 0) {
      return;
    }
    const [begin] = own[0];
    while (points.length > 0 && points[points.length - 1][0] >= begin) {
      points.pop();
    }
    if (at > 0) {
      marks.push(begin);
    }
    points.push(...own);
  });
  return { label, points, marks };
}

/** Exponential smoothing, without the pull of the first value; gaps stay. */
export function smoothed(
  points: ICourse['points'],
  weight: number
): ICourse['points'] {
  if (weight <= 0) {
    return points;
  }
  let sum = 0;
  let count = 0;
  return points.map(([place, value]) => {
    if (value === null) {
      return [place, null] as const;
    }
    sum = sum * weight + value * (1 - weight);
    count += 1;
    return [place, sum / (1 - weight ** count)] as const;
  });
}

/** The chart of one name: a curve for each rank, or of many ranks a band and the first one. */
export function rankChart(
  name: string,
  series: readonly ISeries[],
  view: ICurveView,
  trans: TranslationBundle
): IRunChart {
  const own = series.filter(one => one.name === name);
  const ranks = [...new Set(own.map(one => one.rank))].sort((a, b) => a - b);
  const courses = ranks.map(rank =>
    courseOf(
      own.filter(one => one.rank === rank),
      view.x,
      trans.__('Rank %1', rank)
    )
  );
  if (courses.length <= MAX_CURVES) {
    return chartOf(name, courses, view, { bandOf: null, trans });
  }
  const [first] = courses;
  const others = standingOut(courses).filter(one => one !== first);
  return chartOf(name, [first, ...others], view, { bandOf: courses, trans });
}

/** Of the ranks of a band, those with a curve of their own beside the first. */
const MAX_NAMED = 3;

/** Times the usual distance from the median, from which on a rank stands out. */
const FAR = 8;

/** Part of the median that it must be away from it in any case. */
const MIN_PART = 0.05;

/** The ranks that are behind the others, or whose newest value is far from theirs or not finite; the farthest first. */
function standingOut(courses: readonly ICourse[]): readonly ICourse[] {
  const begun = courses.filter(one => one.points.length > 0);
  const ends = begun.map(({ points }) => points[points.length - 1]);
  const steps = distances(ends.map(([place]) => place));
  const values = distances(ends.map(([, value]) => value));
  return begun
    .map((course, at) => ({
      course,
      far: Math.max(-steps[at], Math.abs(values[at]))
    }))
    .filter(one => one.far > 1)
    .sort((one, other) => other.far - one.far)
    .slice(0, MAX_NAMED)
    .map(one => one.course);
}

/** How far values are above their median; from 1 on they stand out, as those that are not finite do. */
function distances(values: readonly (number | null)[]): readonly number[] {
  const finite = values.flatMap(one => one ?? []);
  const middle = median(finite);
  const usual = median(finite.map(one => Math.abs(one - middle)));
  const limit = Math.max(FAR * usual, MIN_PART * Math.abs(middle));
  return values.map(one => {
    if (one === null) {
      return finite.length > 0 ? Infinity : 0;
    }
    return one === middle ? 0 : (one - middle) / limit;
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The chart of one name with a curve for each course. */
export function chartOf(
  name: string,
  courses: readonly ICourse[],
  view: ICurveView,
  options: {
    readonly bandOf: readonly ICourse[] | null;
    readonly trans: TranslationBundle;
  }
): IRunChart {
  const { bandOf, trans } = options;
  const shown = courses.map(one => ({
    ...one,
    points: smoothed(one.points, view.smoothing)
  }));
  const places = placesOf(bandOf ?? shown);
  const index = new Map(places.map((place, at) => [place, at]));
  const curves: IRunCurve[] = shown.map(one => {
    const values: (number | null)[] = places.map(() => null);
    const broken = new Set<number>();
    for (const [place, value] of one.points) {
      const at = index.get(place);
      if (at !== undefined) {
        values[at] = value;
        if (value === null) {
          broken.add(at);
        }
      }
    }
    const finite = one.points.flatMap(([, value]) =>
      value === null ? [] : [value]
    );
    const last = one.points[one.points.length - 1]?.[1];
    return {
      label: one.label,
      values,
      broken,
      last: last === undefined ? '' : numberText(last),
      peak:
        finite.length > 0
          ? rangeText(finite)
          : one.points.length > 0
            ? 'NaN'
            : ''
    };
  });
  return {
    name,
    title: name,
    peakTitle: trans.__('Range'),
    unit: bandOf === null ? '' : trans.__('band: all %1 ranks', bandOf.length),
    times: places,
    top: null,
    isLog: view.isLog,
    isFree: true,
    isZoomable: true,
    hasGaps: false,
    marks: [...new Set(courses.flatMap(one => one.marks))],
    band: bandOf && bandAround(bandOf, places, index),
    ...(view.x === 'step' && {
      xText: (step: number) => String(Math.round(step))
    }),
    curves,
    text: valueText
  };
}

function placesOf(courses: readonly ICourse[]): readonly number[] {
  const places = new Set<number>();
  for (const { points } of courses) {
    for (const [place] of points) {
      places.add(place);
    }
  }
  return [...places].sort((one, other) => one - other);
}

/** Parts of a band: ranks report at different places, so that a single place has only some of them. */
const BAND_PARTS = 200;

function bandAround(
  courses: readonly ICourse[],
  places: readonly number[],
  index: ReadonlyMap<number, number>
): { low: (number | null)[]; high: (number | null)[] } {
  const size = Math.max(1, Math.ceil(places.length / BAND_PARTS));
  const low: (number | null)[] = [];
  const high: (number | null)[] = [];
  for (const { points } of courses) {
    for (const [place, value] of points) {
      const at = index.get(place);
      if (at !== undefined && value !== null) {
        const part = Math.floor(at / size);
        low[part] = Math.min(low[part] ?? value, value);
        high[part] = Math.max(high[part] ?? value, value);
      }
    }
  }
  const spread = (parts: readonly (number | null)[]) =>
    places.map((_, at) => parts[Math.floor(at / size)] ?? null);
  return { low: spread(low), high: spread(high) };
}

/** A number, or NaN where it is not finite: the server has null for that. */
export function numberText(value: number | null): string {
  return value === null || Number.isNaN(value) ? 'NaN' : valueText(value);
}

/** A number as short as it can be read. */
export function valueText(value: number): string {
  const size = Math.abs(value);
  if (value === 0) {
    return '0';
  }
  return size >= 1e6 || size < 1e-3
    ? Number(value.toPrecision(3)).toExponential().replace('e+', 'e')
    : String(Number(value.toPrecision(4)));
}

function rangeText(values: readonly number[]): string {
  const low = values.reduce((one, other) => Math.min(one, other));
  const high = values.reduce((one, other) => Math.max(one, other));
  return `${valueText(low)} – ${valueText(high)}`;
}
