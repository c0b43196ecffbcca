import { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  closeIcon,
  linkIcon,
  listIcon
} from '@jupyterlab/ui-components';

import { ICluster } from '../clusters/types';
import { IMenuEntry } from '../components/menu';
import type { IPanelActions } from './actions';
import { canConnect } from './reach';

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
  // The embedded cluster is always there.
  if (configured && cluster.orchestrator !== 'local') {
    entries.push(null, {
      label: trans.__('Disconnect…'),
      icon: closeIcon,
      run: () => actions.disconnect(cluster)
    });
  }
  return entries;
}
