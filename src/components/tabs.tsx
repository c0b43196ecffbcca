import * as React from 'react';

interface IProps<T extends string> {
  /** What is chosen by the tabs. */
  label: string;
  tabs: readonly { name: T; label: string }[];
  /** A class of the panel. Such a panel can be scrolled, so the keyboard reaches it. */
  panelClass?: string;
  /** What the panel shows. */
  children: (tab: T) => React.ReactNode;
}

/**
 * Tabs and the panel under them, the first one to begin with: the arrow keys go round, Tab goes on to the panel.
 */
export function Tabs<T extends string>(props: IProps<T>): JSX.Element {
  const { children, label, panelClass, tabs } = props;
  const [current, setCurrent] = React.useState(tabs[0].name);
  const id = React.useId();
  const move = (event: React.KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (step !== 0) {
      event.preventDefault();
      const at = tabs.findIndex(tab => tab.name === current);
      const next = tabs[(at + step + tabs.length) % tabs.length].name;
      setCurrent(next);
      document.getElementById(`${id}-${next}`)?.focus();
    }
  };
  return (
    <>
      <div
        role="tablist"
        aria-label={label}
        className="jp-HyperPod-Tabs"
        onKeyDown={move}
      >
        {tabs.map(tab => (
          <button
            key={tab.name}
            id={`${id}-${tab.name}`}
            type="button"
            role="tab"
            aria-selected={tab.name === current}
            aria-controls={`${id}-panel`}
            tabIndex={tab.name === current ? 0 : -1}
            onClick={() => setCurrent(tab.name)}
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        key={current}
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={`${id}-${current}`}
        className={panelClass}
        tabIndex={panelClass === undefined ? undefined : 0}
      >
        {children(current)}
      </div>
    </>
  );
}
