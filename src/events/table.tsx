import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { ServerTable } from '../clusters/serverTable';
import { ITableQuery } from '../clusters/types';
import type { ClusterView } from '../clusters/view';
import type { IEventClient } from './client';
import { eventColumns, levelText } from './columns';
import { showEvent } from './detail';
import { EVENT_LEVELS, EventLevel, IEventChoice, IEventPage } from './types';

/** What is in the events that can be chosen. */
type Choices = Pick<IEventPage, 'groups' | 'instances'>;

/**
 * The events of a HyperPod cluster, newest first.
 */
export function EventsTable(props: {
  client: IEventClient;
  cluster: string;
  isShown: () => boolean;
  view: ClusterView;
  trans: TranslationBundle;
}): JSX.Element {
  const { client, cluster, isShown, trans } = props;
  const [choice, setChoice] = React.useState<IEventChoice>({});
  const [choices, setChoices] = React.useState<Choices>({
    groups: [],
    instances: []
  });
  const load = React.useCallback(
    async (query: ITableQuery) => {
      const page = await client.events(cluster, { ...query, ...choice });
      setChoices({ groups: page.groups, instances: page.instances });
      return page;
    },
    [client, cluster, choice]
  );
  const show = (id: string) => void showEvent(client, cluster, id, trans);
  return (
    <ServerTable
      load={load}
      label={trans.__('Events')}
      columns={eventColumns(show, trans)}
      sort="-time"
      empty={
        Object.values(choice).some(Boolean)
          ? trans.__('No events match.')
          : trans.__('AWS has no events for this cluster.')
      }
      choice={choice}
      isShown={isShown}
      refresher={props.view}
      trans={trans}
    >
      <Fields {...choices} choice={choice} choose={setChoice} trans={trans} />
    </ServerTable>
  );
}

interface IFieldProps {
  choice: IEventChoice;
  choose: (choice: IEventChoice) => void;
  trans: TranslationBundle;
}

/** Which of the events are shown. */
function Fields(props: IFieldProps & Choices): JSX.Element {
  return (
    <div className="jp-HyperPod-Table-choices">
      <LevelField {...props} />
      <GroupField {...props} />
      <NodeField {...props} />
    </div>
  );
}

function LevelField({ choice, choose, trans }: IFieldProps): JSX.Element {
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Level')}
      <select
        className="jp-HyperPod-select"
        value={choice.level ?? EVENT_LEVELS[0]}
        onChange={event => {
          const level = event.target.value as EventLevel;
          choose({
            ...choice,
            level: level === EVENT_LEVELS[0] ? undefined : level
          });
        }}
      >
        {EVENT_LEVELS.map((level, at) => (
          <option key={level} value={level}>
            {at === 0
              ? trans.__('all')
              : at === EVENT_LEVELS.length - 1
                ? levelText(level, trans)
                : trans.__('%1 or worse', levelText(level, trans))}
          </option>
        ))}
      </select>
    </label>
  );
}

function GroupField(
  props: IFieldProps & Pick<Choices, 'groups'>
): JSX.Element | null {
  const { choice, choose, groups, trans } = props;
  if (groups.length === 0 && choice.group === undefined) {
    return null;
  }
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Instance group')}
      <select
        className="jp-HyperPod-select"
        value={choice.group ?? ''}
        onChange={event =>
          choose({ ...choice, group: event.target.value || undefined })
        }
      >
        <option value="">{trans.__('all')}</option>
        {groups.map(group => (
          <option key={group} value={group}>
            {group}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Chooses an instance; what is typed holds once the field is left, or with Enter. */
function NodeField(
  props: IFieldProps & Pick<Choices, 'instances'>
): JSX.Element | null {
  const { choice, choose, instances, trans } = props;
  const list = React.useId();
  const [text, setText] = React.useState(choice.node ?? '');
  if (instances.length === 0 && choice.node === undefined) {
    return null;
  }
  const take = (value: string): void => {
    const node = value.trim() || undefined;
    if (node !== choice.node) {
      choose({ ...choice, node });
    }
  };
  return (
    <label className="jp-HyperPod-field">
      {trans.__('Instance')}
      <input
        className="jp-HyperPod-input"
        list={list}
        value={text}
        placeholder={trans.__('all')}
        title={trans.__('An instance id or the start of one')}
        onChange={event => {
          const { value } = event.target;
          setText(value);
          if (value === '' || instances.includes(value)) {
            take(value);
          }
        }}
        onBlur={() => take(text)}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            take(text);
          }
        }}
      />
      <datalist id={list}>
        {instances.map(instance => (
          <option key={instance} value={instance} />
        ))}
      </datalist>
    </label>
  );
}
