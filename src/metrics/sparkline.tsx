import * as React from 'react';

import { IMetric } from './client';

const WIDTH = 240;
const HEIGHT = 32;
/** Half of the line's width: what lies at the edge is not cut. */
const EDGE = 1;

/** The value of a period, and when that began (Unix milliseconds). */
interface IPoint {
  readonly time: number;
  readonly value: number;
}

export interface ISparklineProps {
  points: IMetric['points'];
  /** Begin and end of the time that is shown, and a period, all in milliseconds. */
  begin: number;
  end: number;
  period: number;
  /** The value at the upper edge; the lower one is nought. */
  top: number;
  /** What a screen reader says. */
  label: string;
}

/**
 * The course of values as a small chart. Where a period has no value the line has a gap.
 */
export function Sparkline(props: ISparklineProps): JSX.Element {
  const { begin, end, label, period, points, top } = props;
  const span = Math.max(1, end - begin);
  const x = (time: number) => round(((time - begin) / span) * WIDTH);
  const y = (value: number) => {
    const share = top > 0 ? Math.min(1, Math.max(0, value / top)) : 0;
    return round(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE));
  };
  return (
    <svg
      className="jp-HyperPod-Sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {unbroken(points, period).map(part => {
        // A value holds for its whole period, so one alone is a line too.
        const line = part
          .map(one => {
            const until = Math.min(one.time + period, end);
            return `${x(one.time)},${y(one.value)} ${x(until)},${y(one.value)}`;
          })
          .join(' ');
        const last = part[part.length - 1].time + period;
        const right = x(Math.min(last, end));
        const floor = `${right},${HEIGHT} ${x(part[0].time)},${HEIGHT}`;
        return (
          <React.Fragment key={part[0].time}>
            <polygon points={`${line} ${floor}`} />
            <polyline points={line} />
          </React.Fragment>
        );
      })}
    </svg>
  );
}

/** The points in parts between which periods have no value. */
export function unbroken(
  points: IMetric['points'],
  period: number
): IPoint[][] {
  const parts: IPoint[][] = [];
  let before = -Infinity;
  for (const { time: moment, value } of points) {
    const time = Date.parse(moment);
    if (time - before > 1.5 * period) {
      parts.push([]);
    }
    parts[parts.length - 1].push({ time, value });
    before = time;
  }
  return parts;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
