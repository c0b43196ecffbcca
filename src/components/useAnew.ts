import * as React from 'react';

/**
 * A value that is created once, and again when the stamp changes: a loader, so that a table is read again after an action on its rows.
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
