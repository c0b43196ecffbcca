/**
 * One line of a chart.
 */
export interface ICurve {
  readonly label: string;
  /** In the chart's unit, one for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** As CSS; default: that of its place. */
  readonly colour?: string;
}

/**
 * A chart: curves over time, in one unit.
 */
export interface IChart<C extends ICurve = ICurve> {
  readonly name: string;
  readonly title: string;
  /** Beside the title. */
  readonly unit: string;
  /** Unix seconds, or what `xText` says. */
  readonly times: readonly number[];
  /** A place on the horizontal axis in words, where it is no time. */
  readonly xText?: (x: number) => string;
  /** Whether the vertical axis is logarithmic. */
  readonly isLog?: boolean;
  /** Whether the vertical axis begins at the smallest value, not at 0. */
  readonly isFree?: boolean;
  /** Whether dragging zooms, and a double click shows all again. */
  readonly isZoomable?: boolean;
  /** Whether the curves are bars on top of each other, the last one at the bottom; the horizontal axis has whole numbers. */
  readonly isStacked?: boolean;
  /** Places on the horizontal axis with a line across. */
  readonly marks?: readonly number[];
  /** The values around the curves, drawn as a band. */
  readonly band?: {
    readonly low: readonly (number | null)[];
    readonly high: readonly (number | null)[];
  } | null;
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
export const COLOURS = 8;

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
