import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IColumn, ServerTable } from '../clusters/serverTable';
import { ITableQuery, TableRow, valueText } from '../clusters/types';
import { plainText } from '../components/hint';
import { StateChip } from '../components/stateChip';
import { IAdminClient } from './client';
import { IWork, STEP_STATES, StepState } from './types';
import { stepStateText } from './words';

/**
 * The steps of a plan, a page of them at a time, with what was there, what is to be there, and what became of it.
 */
export function StepsTable(props: {
  client: IAdminClient;
  work: IWork;
  isShown: () => boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, isShown, trans, work } = props;
  const [state, setState] = React.useState<StepState | undefined>();
  // Another plan, or another stage of it, is read at once; what comes one by one, once a second.
  const stage = `${work.number} ${work.plan?.id} ${work.state}`;
  const load = React.useCallback(
    (query: ITableQuery) => client.steps({ ...query, state }),
    [client, state, stage]
  );
  return (
    <ServerTable
      load={load}
      label={trans.__('Steps')}
      columns={columnsOf(trans)}
      sort="key"
      empty={
        state === undefined
          ? trans.__('No steps.')
          : trans.__('No steps in this state.')
      }
      choice={state}
      isShown={isShown}
      trans={trans}
    >
      <div className="jp-HyperPod-Table-choices">
        <StateField state={state} choose={setState} trans={trans} />
      </div>
    </ServerTable>
  );
}

/** Which of them are shown. */
function StateField(props: {
  state: StepState | undefined;
  choose: (state: StepState | undefined) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { choose, state, trans } = props;
  return (
    <label className="jp-HyperPod-field">
      {trans.__('State')}
      <select
        className="jp-HyperPod-select"
        value={state ?? ''}
        onChange={event =>
          choose(STEP_STATES.find(one => one === event.target.value))
        }
      >
        <option value="">{trans.__('all')}</option>
        {STEP_STATES.map(one => (
          <option key={one} value={one}>
            {stepStateText(one, trans)}
          </option>
        ))}
      </select>
    </label>
  );
}

function columnsOf(trans: TranslationBundle): readonly IColumn[] {
  return [
    { name: 'target', label: trans.__('Target') },
    {
      name: 'state',
      label: trans.__('State'),
      render: row => {
        const state = valueText(row.state);
        const text = stepStateText(state, trans);
        return <StateChip state={state} text={text} trans={trans} />;
      }
    },
    {
      name: 'before',
      label: trans.__('Before'),
      render: row => (
        <span data-is={kept(row)}>{folderText(row, row.before, trans)}</span>
      )
    },
    {
      name: 'after',
      label: trans.__('After'),
      render: row => (
        <span data-will={kept(row)}>{folderText(row, row.after, trans)}</span>
      )
    },
    {
      name: 'reason',
      label: trans.__('Reason'),
      optional: true,
      render: row => {
        const said = [row.reason, row.hint]
          .map(valueText)
          .map(plainText)
          .filter(Boolean);
        return said.length === 0 ? null : (
          <span className="jp-HyperPod-Table-text">{said.join(': ')}</span>
        );
      }
    },
    {
      name: 'restarts',
      label: trans.__('Restart'),
      unsorted: true,
      optional: true
    }
  ];
}

/** What is there or is to be there: who has no folder of his own may well have the domain's. */
function folderText(
  { target }: TableRow,
  value: TableRow[string],
  trans: TranslationBundle
): string {
  const text = valueText(value);
  const isOwn = valueText(target).startsWith('profile ');
  return isOwn && text === 'not mounted' ? trans.__('not set') : text;
}

/** Whether an apply changes it, or has. */
function kept(row: TableRow): string {
  return ['to-do', 'done'].includes(valueText(row.state)) ? 'changed' : 'same';
}
