const CANDIDATES =
  'a[href], button, input, select, summary, textarea, [tabindex]';

/** What the Tab key comes to inside a node, in order. */
export function focusable(node: HTMLElement): readonly HTMLElement[] {
  return [...node.querySelectorAll<HTMLElement>(CANDIDATES)].filter(
    one =>
      one.tabIndex >= 0 && !one.matches(':disabled') && !isHidden(one, node)
  );
}

/** Where Tab would leave a node, go on at its other end. */
export function keepTabInside(node: HTMLElement, event: KeyboardEvent): void {
  const all = focusable(node);
  const [first, last] = [all[0], all[all.length - 1]];
  const [end, next] = event.shiftKey ? [first, last] : [last, first];
  if (document.activeElement === end) {
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  }
}

/** Folded away, or a choice of which Tab comes to the chosen one only. */
function isHidden(one: HTMLElement, node: HTMLElement): boolean {
  const folded = one.closest('details:not([open])');
  if (folded && one !== folded.querySelector('summary')) {
    return true;
  }
  if (!(one instanceof HTMLInputElement) || one.type !== 'radio') {
    return false;
  }
  return (
    !one.checked &&
    [...node.querySelectorAll<HTMLInputElement>('input[type=radio]')].some(
      other => other.checked && other.name === one.name
    )
  );
}
