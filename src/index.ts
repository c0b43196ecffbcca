import { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { basePlugin } from './plugin';
import { runsPlugin } from './runs/plugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [basePlugin, runsPlugin];

export default plugins;
