import { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  copyIcon,
  linkIcon,
  listIcon,
  redoIcon,
  stopIcon
} from '@jupyterlab/ui-components';

import { fittingActions } from '../actions/kinds';
import { ICluster } from '../clusters/types';
import { IMenuEntry } from '../components/menu';
import { IRun } from '../runs/types';
import type { IPanelActions } from './actions';
import { canConnect } from './reach';

/** Whether a run can be cancelled. */
export function canCancel(run: IRun): boolean {
  return (
    run.own &&
    run.reason_code !== 'cancelling' &&
    fittingActions(['cancel'], run.state, false).length > 0
  );
}

/** What the context menu of a run offers; with several that are chosen, what fits them all. */
export function runEntries(
  runs: readonly IRun[],
  actions: IPanelActions,
  trans: TranslationBundle
): readonly (IMenuEntry | null)[] {
  const [run] = runs;
  const { runAgain } = actions;
  const active = runs.filter(canCancel);
  const entries: (IMenuEntry | null)[] = [];
  if (runs.length === 1) {
    entries.push({
      label: trans.__('Open'),
      icon: listIcon,
      run: () => actions.openRun(run.run_id)
    });
    if (runAgain) {
      entries.push({
        label: trans.__('Run Again…'),
        icon: redoIcon,
        run: () => runAgain(run)
      });
    }
    entries.push({
      label: trans.__('Copy Run Id'),
      icon: copyIcon,
      run: () => actions.copyId(run)
    });
  } else {
    entries.push({
      label: trans.__('Open %1 Runs', runs.length),
      icon: listIcon,
      run: () => runs.forEach(one => actions.openRun(one.run_id, true))
    });
  }
  if (active.length > 0) {
    entries.push(null, {
      label:
        active.length === 1
          ? trans.__('Cancel Run…')
          : trans.__('Cancel %1 Runs…', active.length),
      icon: stopIcon,
      run: () => actions.cancel(active)
    });
  }
  return entries;
}

/** What the context menu of a cluster offers. */
export function clusterEntries(
  cluster: ICluster,
  actions: IPanelActions,
  trans: TranslationBundle
): readonly (IMenuEntry | null)[] {
  const { configured, name } = cluster;
  const { newRun } = actions;
  const entries: (IMenuEntry | null)[] = [
    {
      label: trans.__('Open'),
      icon: listIcon,
      run: () => actions.openCluster(cluster)
    }
  ];
  if (configured) {
    entries.push(
      {
        label: trans.__('Show Jobs'),
        run: () => actions.openCluster(cluster, 'jobs')
      },
      {
        label: trans.__('Show Nodes'),
        run: () => actions.openCluster(cluster, 'nodes')
      }
    );
  }
  if (configured && newRun) {
    entries.push(null, {
      label: trans.__('New Run…'),
      icon: addIcon,
      run: () => newRun(name)
    });
  }
  if (canConnect(cluster)) {
    entries.push(null, {
      label: trans.__('Connect…'),
      icon: linkIcon,
      run: () => actions.connect(cluster)
    });
  }
  return entries;
}
