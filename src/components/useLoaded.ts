import * as React from 'react';

import { ApiError } from '../api';

/**
 * What was read, or why not.
 */
export interface ILoaded<T> {
  readonly value: T | null;
  readonly error: ApiError | null;
  /** Read it again, forgetting what was read. */
  readonly retry: () => void;
  /** Read it again; what was read stays until then. */
  readonly renew: () => void;
}

/**
 * Something that is read once, and again when the function that reads it is another or the user asks for it.
 */
export function useLoaded<T>(load: () => Promise<T>): ILoaded<T> {
  const [value, setValue] = React.useState<T | null>(null);
  const [error, setError] = React.useState<ApiError | null>(null);
  const [turn, setTurn] = React.useState(0);
  const quiet = React.useRef(false);
  React.useEffect(() => {
    let wanted = true;
    if (!quiet.current) {
      setValue(null);
      setError(null);
    }
    quiet.current = false;
    load().then(
      found => {
        if (wanted) {
          setValue(found);
          setError(null);
        }
      },
      (reason: unknown) => {
        if (wanted) {
          setError(ApiError.of(reason));
        }
      }
    );
    return () => {
      wanted = false;
    };
  }, [load, turn]);
  return {
    value,
    error,
    retry: () => setTurn(turn + 1),
    renew: () => {
      quiet.current = true;
      setTurn(turn + 1);
    }
  };
}
