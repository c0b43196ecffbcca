import { JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { Panel, Widget } from '@lumino/widgets';

import type { RunPage } from '../page';
import { isRunShown, RunPages, runPageId } from '../pages';

/** As much of a page as is opened. */
class FakePage extends Widget {
  readonly used = new Signal<this, void>(this);
}

describe('RunPages', () => {
  let root: Panel;
  let pages: RunPages;
  let tracker: WidgetTracker<RunPage>;
  let app: JupyterFrontEnd;
  let added: Widget[];

  beforeEach(() => {
    added = [];
    root = new Panel();
    Widget.attach(root, document.body);
    const shell = {
      add: (page: Widget) => {
        root.addWidget(page);
        added.push(page);
      },
      activateById: () => undefined,
      widgets: () => added.filter(page => !page.isDisposed)
    };
    app = { shell } as unknown as JupyterFrontEnd;
    tracker = new WidgetTracker<RunPage>({ namespace: 'runs' });
    pages = new RunPages(app, tracker);
  });

  afterEach(() => root.dispose());

  function open(runId: string, isPreview: boolean): Promise<void> {
    const make = () => Promise.resolve(new FakePage() as unknown as RunPage);
    return pages.open(runId, isPreview, make);
  }

  /** Those that are open; a preview in brackets. */
  function there(): string[] {
    return added
      .filter(page => !page.isDisposed)
      .map(page => {
        const name = page.id.slice(runPageId('').length);
        const mark = page.title.dataset['hyperpod-preview'];
        return mark === 'true' ? `(${name})` : name;
      });
  }

  it('show one preview at a time', async () => {
    await open('a', true);
    await open('b', true);
    expect(there()).toEqual(['(b)']);
    await open('b', true);
    expect(there()).toEqual(['(b)']);
    await open('c', false);
    await open('d', true);
    expect(there()).toEqual(['c', '(d)']);
  });

  it('pin with a double click in a list', async () => {
    await Promise.all([open('a', true), open('a', false)]);
    await open('b', true);
    expect(there()).toEqual(['a', '(b)']);
  });

  it('pin with a double click on the tab, and by what is done in the page', async () => {
    await open('a', true);
    const tab = document.createElement('li');
    tab.className = 'lm-TabBar-tab';
    tab.dataset.id = runPageId('a');
    document.body.appendChild(tab);
    tab.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
    tab.remove();
    await open('b', true);
    (added[1] as FakePage).used.emit();
    await open('c', true);
    expect(there()).toEqual(['a', 'b', '(c)']);
  });

  it('tell whether a run is in view', async () => {
    await open('a', true);
    expect(isRunShown(app, 'a')).toBe(true);
    expect(isRunShown(app, 'b')).toBe(false);
    added[0].hide();
    expect(isRunShown(app, 'a')).toBe(false);
  });
});
