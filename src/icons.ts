import { LabIcon } from '@jupyterlab/ui-components';

/** A rack of three nodes, one of which is at work. */
const RACK = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g class="jp-icon3" fill="#616161">
    <path d="M4 3h16a1 1 0 0 1 1 1v4a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zm1 2v2h10V5zm12 0v2h2V5z"/>
    <path d="M4 10h16a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1zm1 1.500v2h10v-2zm12 0v2h2v-2z"/>
    <path d="M4 16h16a1 1 0 0 1 1 1v3a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-3a1 1 0 0 1 1-1zm1 1.500v2h10v-2z"/>
  </g>
</svg>`;

/** The extension's own icon. */
export const hyperPodIcon = new LabIcon({
  name: 'hyperpod_jlab:hyperpod',
  svgstr: RACK
});
