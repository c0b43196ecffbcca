import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { below, IMenuEntry, openMenu } from '../components/menu';
import { FILTERS } from './filter';
import { columnLabel } from './runsTable';
import {
  COLUMNS,
  FIRST_VIEW,
  GROUPINGS,
  IRunsView,
  isFiltered,
  RunGrouping
} from './runsView';
import { StateFilter } from './stateFilter';
import { IRun } from './types';
import { RunsViews } from './views';

/**
 * What is above the table of runs: filters, and menus for its groups, columns and saved views.
 */
export function RunsBar(props: {
  runs: readonly IRun[];
  views: RunsViews;
  /** Asks for the name of a view; null: it is not to be saved. */
  nameView: (proposal: string) => Promise<string | null>;
  field: React.RefObject<HTMLInputElement>;
  trans: TranslationBundle;
}): JSX.Element {
  const { field, runs, trans, views } = props;
  const { view } = views;
  const change = (part: Partial<IRunsView>) => views.show({ ...view, ...part });
  const { cluster, states, text } = FIRST_VIEW;
  return (
    <div className="jp-HyperPod-RunsBar" role="search">
      <input
        ref={field}
        type="search"
        className="jp-HyperPod-input"
        placeholder={trans.__('Filter')}
        aria-label={trans.__('Filter runs')}
        aria-keyshortcuts="/"
        title={trans.__('Filter by name, cluster, queue, state or reason (/)')}
        value={view.text}
        onChange={event => change({ text: event.target.value })}
        onKeyDown={event => {
          if (event.key === 'Escape') {
            change({ text });
          }
        }}
      />
      <StateFilter
        runs={runs}
        offered={Object.keys(FILTERS)}
        states={new Set(view.states)}
        change={chosen => change({ states: [...chosen] })}
        trans={trans}
      />
      <ClusterChoice runs={runs} view={view} change={change} trans={trans} />
      {isFiltered(view) && (
        <button
          type="button"
          className="jp-HyperPod-link"
          onClick={() => change({ cluster, states, text })}
        >
          {trans.__('Clear filters')}
        </button>
      )}
      <span className="jp-HyperPod-RunsBar-space" />
      <Choice
        label={
          view.group === 'none'
            ? trans.__('Group')
            : trans.__('Group: %1', groupText(view.group, trans))
        }
        isOn={view.group !== 'none'}
        entries={() =>
          GROUPINGS.map(group => ({
            label: groupText(group, trans),
            isOn: view.group === group,
            run: () => change({ group })
          }))
        }
      />
      <Choice
        label={trans.__('Columns')}
        isOn={false}
        entries={() => columnEntries(view, change, trans)}
      />
      <Choice
        label={
          views.current === null
            ? trans.__('Views')
            : trans.__('View: %1', views.current)
        }
        isOn={views.current !== null}
        entries={() => viewEntries(props)}
      />
    </div>
  );
}

/** A menu of the clusters that have runs, where there are several. */
function ClusterChoice(props: {
  runs: readonly IRun[];
  view: IRunsView;
  change: (part: Partial<IRunsView>) => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { change, runs, trans, view } = props;
  const { cluster } = view;
  const clusters = [...new Set(runs.map(run => run.cluster))].sort();
  return clusters.length > 1 || cluster !== null ? (
    <Choice
      label={
        cluster === null
          ? trans.__('Cluster')
          : trans.__('Cluster: %1', cluster)
      }
      isOn={cluster !== null}
      entries={() => [
        {
          label: trans.__('All Clusters'),
          isOn: cluster === null,
          run: () => change({ cluster: null })
        },
        null,
        ...clusters.map(name => ({
          label: name,
          isOn: cluster === name,
          run: () => change({ cluster: name })
        }))
      ]}
    />
  ) : null;
}

/** A button with a menu. */
function Choice(props: {
  label: string;
  /** Something is chosen that is not so at first. */
  isOn: boolean;
  entries: () => readonly (IMenuEntry | null)[];
}): JSX.Element {
  const { entries, isOn, label } = props;
  return (
    <button
      type="button"
      className="jp-HyperPod-button"
      data-on={isOn}
      aria-haspopup="menu"
      onClick={event => openMenu(entries(), below(event.currentTarget))}
    >
      {label}
      <span aria-hidden="true">▾</span>
    </button>
  );
}

/** All columns, each with whether it is shown; the name always is. */
function columnEntries(
  view: IRunsView,
  change: (part: Partial<IRunsView>) => void,
  trans: TranslationBundle
): readonly IMenuEntry[] {
  return COLUMNS.filter(column => column !== 'name').map(column => {
    const isOn = view.columns.includes(column);
    return {
      label: columnLabel(column, trans),
      isOn,
      run: () =>
        change({
          columns: COLUMNS.filter(one =>
            one === column ? !isOn : view.columns.includes(one)
          )
        })
    };
  });
}

/** The saved views, and what can be done with them. */
function viewEntries(props: {
  views: RunsViews;
  nameView: (proposal: string) => Promise<string | null>;
  trans: TranslationBundle;
}): readonly (IMenuEntry | null)[] {
  const { nameView, trans, views } = props;
  const { current, names } = views;
  const save = async () => {
    const name = (await nameView(current ?? ''))?.trim();
    if (name) {
      views.save(name);
    }
  };
  return [
    {
      label: trans.__('All Runs'),
      isOn: false,
      run: () => views.show(FIRST_VIEW)
    },
    ...names.map(name => ({
      label: name,
      isOn: name === current,
      run: () => views.open(name)
    })),
    null,
    { label: trans.__('Save View…'), run: () => void save() },
    ...(current === null
      ? []
      : [
          {
            label: trans.__('Delete View “%1”', current),
            run: () => views.remove(current)
          }
        ])
  ];
}

function groupText(group: RunGrouping, trans: TranslationBundle): string {
  const texts: Readonly<Record<RunGrouping, string>> = {
    none: trans.__('None'),
    notebook: trans.__('Notebook'),
    name: trans.__('Name'),
    array: trans.__('Array')
  };
  return texts[group];
}
