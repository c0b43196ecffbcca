/** Keys that lead to older lines. */
const UPWARD_KEYS = ['ArrowUp', 'PageUp'];

/** Where a row's element was. */
export interface IPlace {
  readonly element: HTMLElement;
  readonly top: number;
}

/** Whether the user wants to see what is further up. */
export function leadsUp(event: Event): boolean {
  return event instanceof WheelEvent
    ? event.deltaY < 0
    : event instanceof KeyboardEvent && UPWARD_KEYS.includes(event.key);
}

/** The edge of the log that a key leads to. */
export function edgeOf(event: Event): 'start' | 'end' | null {
  if (
    !(event instanceof KeyboardEvent) ||
    event.altKey ||
    event.metaKey ||
    event.shiftKey
  ) {
    return null;
  }
  return event.key === 'Home' ? 'start' : event.key === 'End' ? 'end' : null;
}

/** Set several attributes of a node. */
export function setAttributes(
  node: HTMLElement,
  attributes: Readonly<Record<string, string>>
): void {
  for (const [name, value] of Object.entries(attributes)) {
    node.setAttribute(name, value);
  }
}

/** The last of `count` items for which a test is true, as it is for all items before it; 0 if for none. */
export function lastWhere(
  count: number,
  isTrue: (at: number) => boolean
): number {
  let [low, high] = [0, count - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    [low, high] = isTrue(middle) ? [middle, high] : [low, middle - 1];
  }
  return low;
}
