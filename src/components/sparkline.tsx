import * as React from 'react';

const WIDTH = 56;
const HEIGHT = 14;

/**
 * A course as a small line without axes.
 */
export function Sparkline(props: {
  values: readonly (number | null)[];
}): JSX.Element | null {
  const { values } = props;
  const finite = values.filter(value => value !== null);
  if (finite.length < 2) {
    return null;
  }
  const low = Math.min(...finite);
  const height = Math.max(...finite) - low || 1;
  const points = values.flatMap((value, at) =>
    value === null
      ? []
      : [
          `${((at * WIDTH) / (values.length - 1)).toFixed(1)},${(HEIGHT - 1 - ((value - low) * (HEIGHT - 2)) / height).toFixed(1)}`
        ]
  );
  return (
    <svg
      className="jp-HyperPod-Sparkline"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      aria-hidden="true"
    >
      <polyline points={points.join(' ')} />
    </svg>
  );
}
