import * as React from 'react';

/**
 * Buttons in a row that unfold something below it. One stop of the Tab key; the arrow keys go from button to button.
 */
export function ToggleBar<T extends string>(props: {
  label: string;
  items: readonly { readonly name: T; readonly label: string }[];
  open: readonly T[];
  /** The id of what a button unfolds. */
  regionId: (name: T) => string;
  toggle: (name: T) => void;
}): JSX.Element {
  const { items, label, open, regionId, toggle } = props;
  const [current, setCurrent] = React.useState(0);
  const bar = React.useRef<HTMLDivElement>(null);
  const move = (event: React.KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (step !== 0) {
      event.preventDefault();
      const next = (current + step + items.length) % items.length;
      setCurrent(next);
      bar.current?.querySelectorAll('button')[next]?.focus();
    }
  };
  const stop = Math.min(current, items.length - 1);
  return (
    <div
      ref={bar}
      role="toolbar"
      aria-label={label}
      className="jp-HyperPod-ToggleBar"
      onKeyDown={move}
    >
      {items.map((item, at) => {
        const isOpen = open.includes(item.name);
        return (
          <button
            key={item.name}
            type="button"
            className="jp-HyperPod-ToggleBar-button"
            aria-expanded={isOpen}
            aria-controls={isOpen ? regionId(item.name) : undefined}
            tabIndex={at === stop ? 0 : -1}
            onFocus={() => setCurrent(at)}
            onClick={() => toggle(item.name)}
          >
            {item.label}
          </button>
        );
      })}
    </div>
  );
}
