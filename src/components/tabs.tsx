import { ReactWidget } from '@jupyterlab/ui-components';
import { ISignal, Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';
import * as React from 'react';

interface IBarProps<T extends string> {
  /** What is chosen by the tabs. */
  label: string;
  tabs: readonly { readonly name: T; readonly label: string }[];
  current: T;
  choose: (tab: T) => void;
  /** The id of a tab's element. */
  tabId: (tab: T) => string;
  /** The id of the element that a tab shows. */
  panelId: (tab: T) => string;
}

/**
 * Tabs: the arrow keys go round, Tab goes on to the panel.
 */
function TabBar<T extends string>(props: IBarProps<T>): JSX.Element {
  const { choose, current, label, panelId, tabId, tabs } = props;
  const move = (event: React.KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (step !== 0) {
      event.preventDefault();
      const at = tabs.findIndex(tab => tab.name === current);
      const next = tabs[(at + step + tabs.length) % tabs.length].name;
      choose(next);
      document.getElementById(tabId(next))?.focus();
    }
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
          id={tabId(tab.name)}
          type="button"
          role="tab"
          aria-selected={tab.name === current}
          aria-controls={panelId(tab.name)}
          tabIndex={tab.name === current ? 0 : -1}
          onClick={() => choose(tab.name)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}

/**
 * Tabs and the panel under them. Only what is shown is in the page. Where the chosen tab is there no more, the first one is shown.
 */
export function Tabs<T extends string>(
  props: Pick<IBarProps<T>, 'label' | 'tabs'> & {
    /** The tab to begin with; default: the first. */
    first?: T;
    /** Another tab was chosen. */
    onChoose?: (tab: T) => void;
    /** A class of the panel. Such a panel can be scrolled, so the keyboard reaches it. */
    panelClass?: string;
    /** What the panel shows; with a function that goes to another tab. */
    children: (tab: T, choose: (tab: T) => void) => React.ReactNode;
  }
): JSX.Element {
  const { children, label, onChoose, panelClass, tabs } = props;
  const [chosen, setChosen] = React.useState(props.first ?? tabs[0].name);
  const isThere = tabs.some(({ name }) => name === chosen);
  const current = isThere ? chosen : tabs[0].name;
  const choose = (tab: T) => {
    setChosen(tab);
    onChoose?.(tab);
  };
  const id = React.useId();
  const tabId = (tab: T) => `${id}-${tab}`;
  return (
    <>
      <TabBar
        label={label}
        tabs={tabs}
        current={current}
        choose={choose}
        tabId={tabId}
        panelId={() => `${id}-panel`}
      />
      <div
        key={current}
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={tabId(current)}
        className={panelClass}
        tabIndex={panelClass === undefined ? undefined : 0}
      >
        {children(current, choose)}
      </div>
    </>
  );
}

/**
 * The same for widgets, which stay alive behind another tab.
 */
export class TabbedWidgets extends Panel {
  /**
   * @param label - what is chosen by the tabs
   * @param widgets - what they show, each under the label of its title
   */
  constructor(label: string, widgets: readonly Widget[]) {
    super();
    this.addClass('jp-HyperPod-TabbedWidgets');
    this._current = widgets[0];
    this._bar = new WidgetTabs(this, label, widgets);
    this.addWidget(this._bar);
    for (const widget of widgets) {
      widget.setHidden(widget !== this._current);
      this.addWidget(widget);
    }
  }

  /** What is shown is another. */
  get currentChanged(): ISignal<this, void> {
    return this._currentChanged;
  }

  /** What is shown. */
  get current(): Widget {
    return this._current;
  }

  set current(widget: Widget) {
    if (widget !== this._current) {
      this._current.hide();
      this._current = widget;
      widget.show();
      this._bar.update();
      this._currentChanged.emit();
    }
  }

  /** One more, at a place; default: behind the others. */
  add(widget: Widget, index?: number): void {
    widget.hide();
    this._bar.add(widget, index);
    this.addWidget(widget);
  }

  override dispose(): void {
    Signal.clearData(this);
    super.dispose();
  }

  private readonly _currentChanged = new Signal<this, void>(this);
  private _current: Widget;
  private readonly _bar: WidgetTabs;
}

class WidgetTabs extends ReactWidget {
  constructor(
    private readonly _tabbed: TabbedWidgets,
    private readonly _label: string,
    widgets: readonly Widget[]
  ) {
    super();
    widgets.forEach(widget => this.add(widget));
  }

  /** One more, at a place; default: behind the others. */
  add(widget: Widget, index = this._widgets.length): void {
    widget.id ||= `jp-HyperPod-tab-${WidgetTabs._count++}`;
    widget.node.setAttribute('role', 'tabpanel');
    widget.node.setAttribute('aria-labelledby', tabIdOf(widget.id));
    this._widgets.splice(index, 0, widget);
    this.update();
  }

  protected override render(): JSX.Element {
    const widgets = this._widgets;
    return (
      <TabBar
        label={this._label}
        tabs={widgets.map(({ id, title }) => ({
          name: id,
          label: title.label
        }))}
        current={this._tabbed.current.id}
        choose={id =>
          (this._tabbed.current =
            widgets.find(widget => widget.id === id) ?? widgets[0])
        }
        tabId={tabIdOf}
        panelId={id => id}
      />
    );
  }

  private static _count = 0;
  private readonly _widgets: Widget[] = [];
}

function tabIdOf(panelId: string): string {
  return `${panelId}-tab`;
}
