import * as React from 'react';

/**
 * A value that is made once, and anew whenever the stamp is another: a loader, so that a table is read again after something was done to its rows.
 */
export function useAnew<T>(make: () => T, stamp: unknown): T {
  const [kept, setKept] = React.useState(() => ({ value: make(), stamp }));
  if (kept.stamp === stamp) {
    return kept.value;
  }
  const next = { value: make(), stamp };
  setKept(next);
  return next.value;
}
