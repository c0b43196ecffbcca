/**
 * One line of a chart.
 */
export interface ICurve {
  readonly label: string;
  /** In the chart's unit, one for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
}

/**
 * A chart: curves over time, in one unit.
 */
export interface IChart<C extends ICurve = ICurve> {
  readonly name: string;
  readonly title: string;
  /** Beside the title. */
  readonly unit: string;
  /** Unix seconds. */
  readonly times: readonly number[];
  /** The value at the upper edge; null: the largest one. */
  readonly top: number | null;
  /** A value that must not be reached, drawn as a line. */
  readonly limit?: number | null;
  /** Whether only whole numbers stand at the axis. */
  readonly isWhole?: boolean;
  /** Whether a curve is broken where nothing is known. */
  readonly hasGaps?: boolean;
  readonly curves: readonly C[];
  /** A value in words. */
  readonly text: (value: number) => string;
}

/** How many colours there are for curves and ranks (`--jp-hyperpod-series-0` and so on in the style sheet). */
const COLOURS = 8;

/** A curve's colour: the theme's for a single curve, otherwise one of the series, repeated if there are more curves. */
export function curveColour(index: number, count: number): string {
  return count === 1
    ? 'var(--jp-brand-color1)'
    : `var(--jp-hyperpod-series-${index % COLOURS})`;
}

/** Curves whose colour repeats are dashed. */
export function isDashed(index: number): boolean {
  return index >= COLOURS;
}
