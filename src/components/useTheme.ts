import * as React from 'react';

/** Of the page: JupyterLab changes them once a theme's style is there. */
const ATTRIBUTES = ['data-jp-theme-name', 'data-jp-theme-light'];

/** Calls back after each change of the theme; returns what ends that. */
export function onTheme(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.body, { attributeFilter: ATTRIBUTES });
  return () => observer.disconnect();
}

/** Another number for each theme: for what is drawn in its colours. */
export function useTheme(): number {
  const [turn, setTurn] = React.useState(0);
  React.useEffect(() => onTheme(() => setTurn(now => now + 1)), []);
  return turn;
}
