import * as React from 'react';

import { ISelection } from './serverTable';
import { TableRow } from './types';

/**
 * The rows that are chosen, by their keys; they stay so on other pages of the table.
 */
export function useSelection(keyOf: (row: TableRow) => string): {
  chosen: ReadonlyMap<string, TableRow>;
  selection: ISelection;
  forget: (keys: readonly string[]) => void;
} {
  const [chosen, setChosen] = React.useState<ReadonlyMap<string, TableRow>>(
    new Map()
  );
  return {
    chosen,
    forget: keys =>
      setChosen(
        before => new Map([...before].filter(([key]) => !keys.includes(key)))
      ),
    selection: {
      keys: new Set(chosen.keys()),
      keyOf,
      choose: (rows, isChosen) => {
        const next = new Map(chosen);
        for (const row of rows) {
          if (isChosen) {
            next.set(keyOf(row), row);
          } else {
            next.delete(keyOf(row));
          }
        }
        setChosen(next);
      }
    }
  };
}
