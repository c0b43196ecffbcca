import * as React from 'react';

import { Sparkline } from '../components/sparkline';
import { IRunNumbers } from './client';
import { numberText } from './curveData';
import { newestText, newestValue } from './words';

/**
 * The newest number of a run with its course, for lists.
 */
export function NumbersCell(props: {
  numbers: IRunNumbers | undefined;
  /** The name whose number is shown, which the list says above; default: the most important one, with its name. */
  metric?: string | null;
}): JSX.Element | null {
  const { metric = null, numbers } = props;
  if (numbers === undefined) {
    return null;
  }
  const { course, course_name: name } = numbers;
  const value = metric === null ? null : newestValue(numbers, metric);
  const text =
    metric === null
      ? newestText(numbers)
      : value === null
        ? ''
        : numberText(value);
  return text === '' ? null : (
    <span className="jp-HyperPod-Numbers">
      {(metric === null || metric === name) && <Sparkline values={course} />}
      {text}
    </span>
  );
}
