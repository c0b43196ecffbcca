import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ApiError } from '../api';
import { ErrorMessage } from '../components/errorMessage';
import { StateChip } from '../components/stateChip';
import { stateText } from '../components/words';
import { IRun } from './types';

/** States in the order of how much they ask to be looked at. */
const STATES = [
  'failed',
  'unknown',
  'running',
  'submitting',
  'waiting',
  'cancelled',
  'succeeded'
];

/**
 * What shows the children of an array.
 */
export interface IChildrenProps {
  readonly run: IRun;
  readonly trans: TranslationBundle;
  /** Reads them. */
  readonly load: (runId: string) => Promise<readonly IRun[]>;
  /** Opens a child's page. */
  readonly open: (runId: string) => void;
}

/**
 * How many children an array has in which state, and each of them.
 */
export function Children(props: IChildrenProps): JSX.Element | null {
  const { run, trans } = props;
  const [isOpen, setOpen] = React.useState(true);
  const counted = run.children ?? {};
  const states = Object.keys(counted).sort(
    (one, other) => rankOf(one) - rankOf(other)
  );
  if (states.length === 0) {
    return null;
  }
  const counts = states
    .map(state => `${counted[state]} ${stateText(state, trans)}`)
    .join(', ');
  return (
    <details
      className="jp-HyperPod-Children"
      open={isOpen}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Array: %1', counts)}</summary>
      {isOpen && <ChildTable {...props} />}
    </details>
  );
}

function ChildTable(props: IChildrenProps): JSX.Element {
  const { open, trans } = props;
  const { children, error } = useChildren(props);
  if (error) {
    return <ErrorMessage error={error} trans={trans} />;
  }
  if (children === null) {
    return <p role="status">{trans.__('Loading…')}</p>;
  }
  // An array may have thousands: the server lists some and counts the others.
  const total = Object.values(props.run.children ?? {}).reduce(
    (sum, count) => sum + count,
    0
  );
  const more = total - children.length;
  return (
    <div className="jp-HyperPod-Children-rows" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{trans.__('Child')}</th>
            <th scope="col">{trans.__('State')}</th>
            <th scope="col">{trans.__('Reason')}</th>
          </tr>
        </thead>
        <tbody>
          {children.map(child => (
            <ChildRow
              key={child.run_id}
              child={child}
              open={open}
              trans={trans}
            />
          ))}
        </tbody>
      </table>
      {more > 0 && <p>{trans.__('and %1 more', more)}</p>}
    </div>
  );
}

function ChildRow(props: {
  child: IRun;
  open: (runId: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { child, open, trans } = props;
  const index = indexOf(child);
  return (
    <tr>
      <td>
        <button
          type="button"
          className="jp-HyperPod-link"
          aria-label={trans.__('Open child %1', index)}
          onClick={() => open(child.run_id)}
        >
          {index}
        </button>
      </td>
      <td>
        <StateChip state={child.state} trans={trans} />
      </td>
      <td>{child.reason}</td>
    </tr>
  );
}

interface IRead {
  readonly children: readonly IRun[] | null;
  readonly error: ApiError | null;
}

/** The children, read again whenever their states change; the old ones stay until then. */
function useChildren({ load, run }: IChildrenProps): IRead {
  const [read, setRead] = React.useState<IRead>({
    children: null,
    error: null
  });
  const { children, run_id: runId, state } = run;
  // A run that is read again is another object, and mostly the same run.
  const counts = JSON.stringify([state, children]);
  React.useEffect(() => {
    let wanted = true;
    load(runId).then(
      found => {
        if (wanted) {
          setRead({ children: sorted(found), error: null });
        }
      },
      (reason: unknown) => {
        if (wanted) {
          const error = ApiError.of(reason);
          setRead({ children: null, error });
        }
      }
    );
    return () => {
      wanted = false;
    };
  }, [load, runId, counts]);
  return read;
}

function sorted(children: readonly IRun[]): IRun[] {
  return [...children].sort(
    (one, other) =>
      rankOf(one.state) - rankOf(other.state) ||
      Number(indexOf(one)) - Number(indexOf(other))
  );
}

function rankOf(state: string): number {
  const at = STATES.indexOf(state);
  return at < 0 ? STATES.length : at;
}

/** A child's id is the array's with the index behind a dot. */
function indexOf(child: IRun): string {
  return child.run_id.slice(child.run_id.lastIndexOf('.') + 1);
}
