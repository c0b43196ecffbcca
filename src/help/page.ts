import { IRenderMimeRegistry, MimeModel } from '@jupyterlab/rendermime';
import { Message } from '@lumino/messaging';
import { Panel } from '@lumino/widgets';

const MARKDOWN = 'text/markdown';

/** The pages that come with the extension: those for people who work in JupyterLab. */
const PAGES: Readonly<Record<string, () => Promise<{ default: string }>>> = {
  lab: () => import('../../docs/lab.md'),
  notebooks: () => import('../../docs/notebooks.md'),
  magic: () => import('../../docs/magic.md'),
  storage: () => import('../../docs/storage.md'),
  doctor: () => import('../../docs/doctor.md'),
  'local-cluster': () => import('../../docs/local-cluster.md')
};

const FIRST = 'lab';

/**
 * The documentation, a page at a time; links between its pages work.
 */
export class DocsPage extends Panel {
  constructor(
    private readonly _rendermime: IRenderMimeRegistry,
    label: string
  ) {
    super();
    this.addClass('jp-HyperPod-Docs');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', label);
    this.node.addEventListener('click', event => this._onClick(event));
  }

  /** Show a page by its name. */
  async open(name = FIRST): Promise<void> {
    const load = PAGES[name] ?? PAGES[FIRST];
    const text = readable((await load()).default, Object.keys(PAGES));
    const renderer = this._rendermime.createRenderer(MARKDOWN);
    await renderer.renderModel(new MimeModel({ data: { [MARKDOWN]: text } }));
    this.widgets.slice().forEach(widget => widget.dispose());
    this.addWidget(renderer);
    this.node.scrollTop = 0;
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }

  private _onClick(event: MouseEvent): void {
    const link =
      event.target instanceof Element ? event.target.closest('a') : null;
    const name = /^([\w-]+)\.md(#.*)?$/.exec(link?.getAttribute('href') ?? '');
    if (name) {
      event.preventDefault();
      void this.open(name[1]);
    }
  }
}

/** A page without its pictures, and without links to pages that are not here. */
export function readable(text: string, pages: readonly string[]): string {
  return text
    .replace(/<picture>[\s\S]*?<\/picture>\n*/g, '')
    .replace(/!\[[^\]]*\]\([^)]*\)\n*/g, '')
    .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (link, words: string, to: string) => {
      const [page] = to.split('.md');
      return /^(https?:|#)/.test(to) || pages.includes(page) ? link : words;
    });
}
