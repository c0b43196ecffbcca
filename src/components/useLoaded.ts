import * as React from 'react';

import { ApiError } from '../api';

/**
 * What was read, or why not.
 */
export interface ILoaded<T> {
  readonly value: T | null;
  readonly error: ApiError | null;
  readonly retry: () => void;
}

/**
 * Something that is read once, and again when the function that reads it is another or the user asks for it.
 */
export function useLoaded<T>(load: () => Promise<T>): ILoaded<T> {
  const [value, setValue] = React.useState<T | null>(null);
  const [error, setError] = React.useState<ApiError | null>(null);
  const [turn, setTurn] = React.useState(0);
  React.useEffect(() => {
    let wanted = true;
    setValue(null);
    setError(null);
    load().then(
      found => {
        if (wanted) {
          setValue(found);
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
  return { value, error, retry: () => setTurn(turn + 1) };
}
