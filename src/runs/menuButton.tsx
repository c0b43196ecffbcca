import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';
import * as React from 'react';

/**
 * A thing that a menu offers.
 */
export interface IMenuItem {
  readonly label: string;
  readonly caption?: string;
  readonly act: () => void;
}

/**
 * A button that opens a small menu below it.
 */
export function MenuButton(props: {
  /** What it says; null for three dots. */
  label: string | null;
  title: string;
  items: readonly IMenuItem[];
}): JSX.Element {
  const { items, label, title } = props;
  const open = (event: React.MouseEvent<HTMLElement>) => {
    const { bottom, left } = event.currentTarget.getBoundingClientRect();
    openMenu(items, left, bottom);
  };
  return (
    <button
      type="button"
      className="jp-HyperPod-button"
      title={title}
      aria-label={label ?? title}
      aria-haspopup="menu"
      onClick={open}
    >
      {label}
      <span aria-hidden="true">{label === null ? '⋯' : '▾'}</span>
    </button>
  );
}

function openMenu(items: readonly IMenuItem[], x: number, y: number): void {
  const commands = new CommandRegistry();
  const describedBy = { args: { type: 'object', properties: {} } };
  const menu = new Menu({ commands });
  items.forEach(({ act, caption, label }, index) => {
    const command = `item-${index}`;
    commands.addCommand(command, { label, caption, describedBy, execute: act });
    menu.addItem({ command });
  });
  // What was chosen is executed after the menu has closed.
  menu.aboutToClose.connect(() => requestAnimationFrame(() => menu.dispose()));
  menu.open(x, y);
  menu.activateNextItem();
}
