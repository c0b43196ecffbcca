import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

/**
 * Something to pick.
 */
export interface IPick {
  readonly id: string;
  readonly label: string;
  /** More words on it, which are searched too. */
  readonly detail?: string;
}

/**
 * Let the user pick one of several, by typing a part of its name.
 *
 * @returns its id; null: none was picked
 */
export async function quickPick(
  options: {
    readonly title: string;
    /** The button's verb. */
    readonly verb: string;
    readonly picks: readonly IPick[];
    /** Said where there is nothing to pick. */
    readonly empty: string;
  },
  trans: TranslationBundle
): Promise<string | null> {
  const { empty, picks, title, verb } = options;
  const body = new PickBody(picks, empty, () => dialog.resolve(1), trans);
  const dialog = new Dialog({
    title,
    body,
    focusNodeSelector: 'input',
    buttons: [
      Dialog.cancelButton({ label: trans.__('Close') }),
      Dialog.okButton({ label: verb })
    ]
  });
  const answer = await dialog.launch();
  return answer.button.accept ? answer.value : null;
}

/** The field and the list below it. */
class PickBody
  extends ReactWidget
  implements Dialog.IBodyWidget<string | null>
{
  constructor(
    private readonly _picks: readonly IPick[],
    private readonly _empty: string,
    private readonly _accept: () => void,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-HyperPod-QuickPick');
  }

  getValue(): string | null {
    return this._current;
  }

  protected override render(): JSX.Element {
    return (
      <PickList
        picks={this._picks}
        empty={this._empty}
        mark={id => (this._current = id)}
        accept={this._accept}
        trans={this._trans}
      />
    );
  }

  private _current: string | null = null;
}

/** Rows that are shown; who types finds the others. */
const MOST = 100;

function PickList(props: {
  picks: readonly IPick[];
  empty: string;
  mark: (id: string | null) => void;
  accept: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { accept, empty, mark, picks, trans } = props;
  const [text, setText] = React.useState('');
  const [marked, setMarked] = React.useState(0);
  const listId = React.useId();
  const list = React.useRef<HTMLUListElement>(null);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = picks
    .filter(({ detail = '', label }) => {
      const all = `${label} ${detail}`.toLowerCase();
      return words.every(word => all.includes(word));
    })
    .slice(0, MOST);
  const at = Math.min(marked, found.length - 1);
  const current = found[at]?.id ?? null;
  mark(current);
  React.useEffect(() => {
    list.current
      ?.querySelector('[aria-selected="true"]')
      ?.scrollIntoView?.({ block: 'nearest' });
  }, [current]);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setMarked((at + step + found.length) % found.length);
    }
  };
  return (
    <>
      <input
        className="jp-HyperPod-input"
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={current === null ? undefined : listId + at}
        aria-label={trans.__('Search')}
        placeholder={trans.__('Search')}
        value={text}
        onChange={event => {
          setText(event.target.value);
          setMarked(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id={listId} role="listbox" aria-label={trans.__('Found')}>
        {found.map(({ detail, id, label }, index) => (
          <li
            key={id}
            id={listId + index}
            role="option"
            aria-selected={index === at}
            onMouseMove={() => setMarked(index)}
            onClick={() => {
              mark(id);
              accept();
            }}
          >
            <span className="jp-HyperPod-QuickPick-label">{label}</span>
            {detail && <small>{detail}</small>}
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <p role="status">
          {picks.length === 0 ? empty : trans.__('Nothing found.')}
        </p>
      )}
    </>
  );
}
