import * as React from 'react';

/**
 * A state of one component whose change is painted in the frame of its event. After a mouse move, `useState` renders only in the next frame.
 */
export function useAtOnce<T>(first: T): [T, (next: T) => void] {
  const [state] = React.useState(() => {
    let value = first;
    let changed: (() => void) | null = null;
    return {
      get: () => value,
      set: (next: T) => {
        value = next;
        changed?.();
      },
      subscribe: (listener: () => void) => {
        changed = listener;
        return () => {
          changed = null;
        };
      }
    };
  });
  return [React.useSyncExternalStore(state.subscribe, state.get), state.set];
}
