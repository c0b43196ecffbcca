import * as React from 'react';

/**
 * A state of one component whose change is painted in the frame of its event. For a move of the mouse, React's own waits for the next frame.
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
