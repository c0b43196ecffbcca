import { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { basePlugin } from './plugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [basePlugin];

export default plugins;
