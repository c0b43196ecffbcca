import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { clipped } from './cells';
import { clusterStateText } from './states';
import { StateChip } from '../components/stateChip';
import { IHyperpodGroup } from './awsTypes';
import { capacityText } from './awsWords';

interface IColumn {
  readonly label: string;
  render(group: IHyperpodGroup): React.ReactNode;
}

/**
 * The instance groups of a HyperPod cluster.
 */
export function GroupsTable(props: {
  groups: readonly IHyperpodGroup[];
  trans: TranslationBundle;
}): JSX.Element {
  const { groups, trans } = props;
  const label = trans.__('Instance groups');
  const columns = columnsOf(trans).filter(column =>
    groups.some(group => column.render(group))
  );
  return (
    <section className="jp-HyperPod-Table" aria-label={label}>
      <div className="jp-HyperPod-Table-head">
        <h2>{label}</h2>
      </div>
      {groups.length === 0 ? (
        <p className="jp-HyperPod-Message" role="status">
          {trans.__('This cluster has no instance groups.')}
        </p>
      ) : (
        <div
          className="jp-HyperPod-Table-scroll"
          role="group"
          aria-label={label}
          tabIndex={0}
        >
          <table>
            <thead>
              <tr>
                {columns.map(column => (
                  <th key={column.label} scope="col">
                    {column.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {groups.map(group => (
                <tr key={group.name}>
                  {columns.map(column => (
                    <td key={column.label}>{column.render(group)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** The columns; those in which no group has anything are left out. */
function columnsOf(trans: TranslationBundle): readonly IColumn[] {
  return [
    { label: trans.__('Instance group'), render: group => group.name },
    {
      label: trans.__('State'),
      render: ({ state }) =>
        state && (
          <StateChip
            state={state}
            text={clusterStateText(state, trans)}
            trans={trans}
          />
        )
    },
    {
      label: trans.__('Nodes'),
      render: ({ current, target }) => trans.__('%1 of %2', current, target)
    },
    { label: trans.__('Instance type'), render: group => group.instance_type },
    {
      label: trans.__('Capacity'),
      render: ({ capacity }) => capacity && capacityText(capacity, trans)
    },
    { label: trans.__('Slurm'), render: group => group.slurm_role },
    {
      label: trans.__('Health checks at startup'),
      render: group => group.checks.join(', ')
    },
    {
      label: trans.__('Lifecycle script'),
      render: ({ script }) => clipped(script)
    }
  ];
}
