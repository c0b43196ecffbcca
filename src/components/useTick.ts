import * as React from 'react';

const SECOND_MS = 1000;

/**
 * Render the component every second while this is wanted and the page is visible.
 */
export function useTick(wanted: boolean): void {
  const [, setTurn] = React.useState(0);
  React.useEffect(() => {
    if (!wanted) {
      return;
    }
    const timer = setInterval(() => {
      if (!document.hidden) {
        setTurn(turn => turn + 1);
      }
    }, SECOND_MS);
    return () => clearInterval(timer);
  }, [wanted]);
}
