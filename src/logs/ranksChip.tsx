import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, checkIcon, closeIcon } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { SignalWidget } from '../components/signalWidget';
import { pageLanguage } from '../components/words';
import { formatRanks, parseRanks } from './ranks';
import { RANK_COLOURS } from './rowElement';
import { ILogStream } from './types';
import { LogViewModel } from './viewModel';

/** Ranks that are listed; of more, a range can be typed. */
const MOST_LISTED = 256;

/** Pixels. */
const WIDTH = 280;

interface IProps {
  model: LogViewModel;
  trans: TranslationBundle;
}

/**
 * Says which ranks are shown, and opens a list to choose others.
 */
export function RanksChip({ model, trans }: IProps): JSX.Element | null {
  const [popup, setPopup] = React.useState<RanksPopup | null>(null);
  // Another root of React cannot go while this one is drawn.
  React.useEffect(() => () => queueMicrotask(() => popup?.dispose()), [popup]);
  if (model.knownRanks.length < 2 && model.ranks === '') {
    return null;
  }
  const absent = absentText(model, trans);
  return (
    <span
      className={`jp-HyperPod-Chips${absent === null ? '' : ' jp-mod-error'}`}
    >
      <button
        type="button"
        className="jp-HyperPod-Chip"
        aria-haspopup="dialog"
        aria-expanded={popup !== null}
        title={absent ?? trans.__('Choose ranks')}
        onClick={({ currentTarget }) =>
          setPopup(
            popup
              ? null
              : new RanksPopup({
                  model,
                  trans,
                  anchor: currentTarget,
                  close: () => setPopup(null)
                })
          )
        }
      >
        {chosenText(model, trans)}
        <caretDownIcon.react tag="span" elementSize="small" />
      </button>
      {model.ranks !== '' && (
        <button
          type="button"
          className="jp-HyperPod-Chip"
          aria-label={trans.__('Show all ranks')}
          title={trans.__('Show all ranks')}
          onClick={() => model.chooseRanks('')}
        >
          <closeIcon.react tag="span" elementSize="small" />
        </button>
      )}
    </span>
  );
}

interface IPopupProps extends IProps {
  anchor: HTMLElement;
  close: () => void;
}

/**
 * The list of ranks below its chip; above everything else on the page, as a menu is.
 */
class RanksPopup extends SignalWidget {
  constructor(props: IPopupProps) {
    super(props.model.changed);
    this._props = props;
    this.addClass('jp-HyperPod-RanksPopup');
    const { bottom, left } = props.anchor.getBoundingClientRect();
    const most = window.innerWidth - WIDTH - 8;
    this.node.style.left = `${Math.max(0, Math.min(left, most))}px`;
    this.node.style.width = `${WIDTH}px`;
    this.node.style.top = `${bottom + 4}px`;
    this.node.setAttribute('role', 'dialog');
    this.node.setAttribute('aria-label', props.trans.__('Ranks'));
    this.node.addEventListener('focusout', ({ relatedTarget }) => {
      const to = relatedTarget instanceof Node ? relatedTarget : null;
      if (to !== props.anchor && !this.node.contains(to)) {
        props.close();
      }
    });
    Widget.attach(this, document.body);
  }

  protected override render(): JSX.Element {
    return <RanksList {...this._props} />;
  }

  private readonly _props: IPopupProps;
}

function RanksList(props: IPopupProps): JSX.Element {
  const { anchor, close, model, trans } = props;
  const [text, setText] = React.useState('');
  const [error, setError] = React.useState<string | null>(null);
  const [active, setActive] = React.useState(-1);
  const id = React.useId();
  const streams = listed(model, text);
  const shown = streams.slice(0, MOST_LISTED);
  const leave = (): void => {
    close();
    anchor.focus();
  };
  const enter = (): void => {
    const stream = shown[active];
    if (stream) {
      toggle(model, stream.rank ?? 0);
      return;
    }
    const wrong = choose(model, text, trans);
    setError(wrong);
    if (wrong === null) {
      leave();
    }
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') {
      enter();
    } else if (event.key === 'Escape') {
      leave();
    } else if (down) {
      setActive(Math.min(Math.max(active + down, -1), shown.length - 1));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div onKeyDown={onKeyDown}>
      <input
        className="jp-HyperPod-input"
        role="combobox"
        autoFocus
        aria-label={trans.__('Ranks')}
        aria-expanded
        aria-controls={`${id}list`}
        aria-activedescendant={active < 0 ? undefined : `${id}${active}`}
        aria-invalid={error !== null}
        placeholder={trans.__('Rank, range or node: 0-3, 7')}
        value={text}
        onChange={event => {
          setText(event.target.value);
          setError(null);
          setActive(-1);
        }}
      />
      {error !== null && <p role="alert">{error}</p>}
      <ul
        id={`${id}list`}
        role="listbox"
        aria-multiselectable
        aria-label={trans.__('Ranks')}
      >
        {shown.map((stream, at) => (
          <RankOption
            key={stream.rank}
            id={`${id}${at}`}
            isActive={at === active}
            model={model}
            stream={stream}
            trans={trans}
          />
        ))}
      </ul>
      {streams.length > shown.length && (
        <p>
          {trans.__(
            '%1 more. Type a rank or a range.',
            streams.length - shown.length
          )}
        </p>
      )}
    </div>
  );
}

function RankOption(
  props: IProps & { id: string; isActive: boolean; stream: ILogStream }
): JSX.Element {
  const { id, isActive, model, stream, trans } = props;
  const rank = stream.rank ?? 0;
  const item = React.useRef<HTMLLIElement>(null);
  React.useEffect(() => {
    if (isActive) {
      item.current?.scrollIntoView?.({ block: 'nearest' });
    }
  }, [isActive]);
  const isChosen = model.feed.request.ranks?.includes(rank) ?? false;
  return (
    <li
      ref={item}
      id={id}
      role="option"
      className={isActive ? 'jp-mod-active' : ''}
      aria-selected={isChosen}
      // The field keeps the focus.
      onPointerDown={event => event.preventDefault()}
      onClick={() => toggle(model, rank)}
    >
      <span className="jp-HyperPod-RanksPopup-check">
        {isChosen && <checkIcon.react tag="span" elementSize="small" />}
      </span>
      <span
        className="jp-HyperPod-LogRow-origin"
        data-colour={rank % RANK_COLOURS}
      >
        {rank}
      </span>
      <span className="jp-HyperPod-RanksPopup-node">
        {rankText(stream, trans)}
      </span>
    </li>
  );
}

/** The ranks that fit a text: the first stream of each. */
function listed(model: LogViewModel, text: string): ILogStream[] {
  const wanted = text.trim().toLowerCase();
  const ranks = wanted === '' ? undefined : parseRanks(wanted);
  const isSingle = /^\d+$/.test(wanted);
  const found = new Map<number, ILogStream>();
  for (const stream of model.streams) {
    const { node, rank } = stream;
    const fits =
      ranks && !isSingle
        ? ranks.includes(rank ?? -1)
        : String(rank).startsWith(wanted) ||
          node.toLowerCase().includes(wanted);
    if (rank !== null && fits && !found.has(rank)) {
      found.set(rank, stream);
    }
  }
  return [...found.values()].sort(
    (one, other) => (one.rank ?? 0) - (other.rank ?? 0)
  );
}

function toggle(model: LogViewModel, rank: number): void {
  const ranks = new Set(model.feed.request.ranks);
  if (!ranks.delete(rank)) {
    ranks.add(rank);
  }
  model.chooseRanks(formatRanks([...ranks].sort((one, other) => one - other)));
}

/** Choose ranks by a text, or else ranks of a node; returns what is wrong with it. */
function choose(
  model: LogViewModel,
  text: string,
  trans: TranslationBundle
): string | null {
  const ranks = parseRanks(text);
  if (ranks === null) {
    const found = listed(model, text).map(({ rank }) => rank ?? 0);
    if (found.length === 0) {
      return trans.__('No rank or node matches. Type for example 0-3, 7.');
    }
    model.chooseRanks(formatRanks(found));
    return null;
  }
  const known = model.knownRanks;
  const absent = ranks?.filter(rank => !known.includes(rank)) ?? [];
  if (absent.length > 0 && model.feed.over) {
    return notFoundText(absent, model, trans);
  }
  model.chooseRanks(text);
  return null;
}

function chosenText(model: LogViewModel, trans: TranslationBundle): string {
  const { ranks } = model.feed.request;
  if (!ranks) {
    return trans.__('All ranks');
  }
  return ranks.length === 1
    ? trans.__('Rank %1', model.ranks)
    : trans.__('Ranks %1', model.ranks);
}

/** Says that chosen ranks are none of the run's; null when they are. */
export function absentText(
  model: LogViewModel,
  trans: TranslationBundle
): string | null {
  return model.absent.length > 0
    ? notFoundText(model.absent, model, trans)
    : null;
}

function notFoundText(
  absent: readonly number[],
  model: LogViewModel,
  trans: TranslationBundle
): string {
  const [wanted, known] = [formatRanks(absent), formatRanks(model.knownRanks)];
  return model.feed.over
    ? trans.__('Rank %1 not found. The ranks are %2.', wanted, known)
    : trans.__(
        'Rank %1 not found yet. The ranks so far are %2.',
        wanted,
        known
      );
}

/** Where a rank runs, and since when it has said nothing. */
function rankText(stream: ILogStream, trans: TranslationBundle): string {
  const { last_at: lastAt, node, silent } = stream;
  if (!silent) {
    return node;
  }
  return lastAt === null
    ? trans.__('%1: no output', node)
    : trans.__(
        '%1: silent since %2',
        node,
        new Date(lastAt).toLocaleTimeString(pageLanguage())
      );
}
