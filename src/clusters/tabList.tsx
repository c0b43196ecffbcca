import * as React from 'react';

interface IProps<T extends string> {
  /** The tabs' ids begin with it, and the panel's, which ends in `-panel`. */
  id: string;
  /** What is chosen by the tabs. */
  label: string;
  tabs: readonly { name: T; label: string }[];
  current: T;
  choose: (tab: T) => void;
}

/**
 * Tabs: the arrow keys go round, Tab goes on to the panel.
 */
export function TabList<T extends string>(props: IProps<T>): JSX.Element {
  const { choose, current, id, label, tabs } = props;
  const move = (event: React.KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (step === 0) {
      return;
    }
    event.preventDefault();
    const at = tabs.findIndex(tab => tab.name === current);
    const next = tabs[(at + step + tabs.length) % tabs.length].name;
    choose(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  return (
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
          onClick={() => choose(tab.name)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}
