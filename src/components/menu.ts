import { LabIcon, MenuSvg } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';

/**
 * An entry of a menu that is made for one opening.
 */
export interface IMenuEntry {
  readonly label: string;
  readonly icon?: LabIcon;
  /** Whether it has a check mark; left out where it never has one. */
  readonly isOn?: boolean;
  readonly run: () => void;
}

/** Without arguments. */
const NOTHING = {
  args: { type: 'object', properties: {}, additionalProperties: false }
} as const;

/**
 * Open a menu; null separates. The focus goes back to where it was.
 */
export function openMenu(
  entries: readonly (IMenuEntry | null)[],
  at: { readonly x: number; readonly y: number }
): void {
  const before = document.activeElement;
  const commands = new CommandRegistry();
  const menu = new MenuSvg({ commands });
  entries.forEach((entry, index) => {
    if (entry === null) {
      menu.addItem({ type: 'separator' });
      return;
    }
    const { icon, isOn, label, run } = entry;
    const command = `entry-${index}`;
    commands.addCommand(command, {
      label,
      icon,
      ...(isOn !== undefined && { isToggleable: true, isToggled: () => isOn }),
      describedBy: NOTHING,
      execute: run
    });
    menu.addItem({ command });
  });
  menu.aboutToClose.connect(() => {
    if (before instanceof HTMLElement) {
      before.focus();
    }
    // What was chosen is executed first.
    setTimeout(() => menu.dispose());
  });
  menu.open(at.x, at.y);
}

/** Below an element. */
export function below(element: Element): { x: number; y: number } {
  const { bottom, left } = element.getBoundingClientRect();
  return { x: left, y: bottom };
}
