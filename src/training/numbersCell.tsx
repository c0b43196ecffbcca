import * as React from 'react';

import { Sparkline } from '../components/sparkline';
import { IRunNumbers } from './client';
import { newestText } from './words';

/**
 * The newest number of a run with its course, for lists.
 */
export function NumbersCell(props: {
  numbers: IRunNumbers | undefined;
}): JSX.Element | null {
  const { numbers } = props;
  if (numbers === undefined || numbers.course_name === null) {
    return null;
  }
  return (
    <span className="jp-HyperPod-Numbers">
      <Sparkline values={numbers.course} />
      {newestText(numbers)}
    </span>
  );
}
