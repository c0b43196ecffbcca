import { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { adminPlugin } from './admin/plugin';
import { clustersPlugin } from './clusters/plugin';
import { costPlugin } from './cost/plugin';
import { doctorPlugin } from './doctor/plugin';
import { helpPlugin } from './help/plugin';
import { lifecyclePlugin } from './lifecycle/plugin';
import { metricsPlugin } from './metrics/plugin';
import { nodesPlugin } from './nodes/plugin';
import { nodeLogsPlugin } from './nodeLogs/plugin';
import { noticesPlugin } from './notices/plugin';
import { trainingPlugin } from './training/plugin';
import { notebookPlugin } from './notebook/plugin';
import { outputPlugin } from './output/plugin';
import { panelPlugin } from './panel/plugin';
import { basePlugin } from './plugin';
import { runningPlugin } from './running/plugin';
import { runsPlugin } from './runs/plugin';
import { statusPlugin } from './status/plugin';
import { storagePlugin } from './storage/plugin';
import { submitPlugin } from './submit/plugin';

export * from './tokens';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  basePlugin,
  runsPlugin,
  submitPlugin,
  notebookPlugin,
  outputPlugin,
  clustersPlugin,
  metricsPlugin,
  nodesPlugin,
  nodeLogsPlugin,
  costPlugin,
  doctorPlugin,
  lifecyclePlugin,
  adminPlugin,
  panelPlugin,
  storagePlugin,
  statusPlugin,
  runningPlugin,
  noticesPlugin,
  trainingPlugin,
  helpPlugin
];

export default plugins;
