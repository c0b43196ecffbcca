import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { bytesText } from '../components/words';
import { ILogAttempt } from '../logs/types';
import { IRankStatus, IRunResources } from './client';
import { secondsBetween, spanText } from './words';

/**
 * What shows the ranks.
 */
export interface IRankStripProps {
  readonly ranks: readonly IRankStatus[];
  readonly streams: readonly ILogAttempt[];
  readonly resources: IRunResources | null;
  readonly trans: TranslationBundle;
  /** Shows a rank's log. */
  readonly showRank: (rank: number) => void;
  /** Reads the last line of a rank's log; null where it has none. */
  readonly loadLine: (rank: number) => Promise<string | null>;
}

/** The ranks' states in the order of how much they ask to be looked at. */
const STATES = [
  'failed',
  'lost',
  'silent',
  'starting',
  'running',
  'stopped',
  'succeeded'
];

/**
 * One cell for each rank, with its state as colour and texture; pointed at, or reached with the arrow keys, a rank says how it is.
 */
export function RankStrip(props: IRankStripProps): JSX.Element | null {
  const { ranks, showRank, trans } = props;
  const [pointed, setAt] = React.useState<number | null>(null);
  const [isPointed, setPointed] = React.useState(false);
  const cells = React.useRef<HTMLDivElement>(null);
  if (ranks.length === 0) {
    return null;
  }
  const silent = silentRanks(props.streams);
  const states = ranks.map(rank => stateOf(rank, silent));
  // The first to look at is one that failed.
  const at = Math.min(
    pointed ?? Math.max(0, states.indexOf('failed')),
    ranks.length - 1
  );
  const chosen = ranks[at];
  const move = (event: React.KeyboardEvent) => {
    const next = nextIndex(event.key, at, ranks.length);
    if (next !== null) {
      event.preventDefault();
      setAt(next);
      cells.current?.querySelectorAll('button')[next]?.focus();
    }
  };
  return (
    <section className="jp-HyperPod-Ranks">
      <h2>
        {trans.__('Ranks')}
        <span className="jp-HyperPod-Ranks-counts">
          {countsText(states, trans)}
        </span>
      </h2>
      <div
        ref={cells}
        className="jp-HyperPod-Ranks-cells"
        role="group"
        aria-label={trans.__('Ranks')}
        onKeyDown={move}
        onFocus={() => setPointed(true)}
        onPointerEnter={() => setPointed(true)}
      >
        {ranks.map((rank, index) => (
          <button
            key={rank.rank}
            type="button"
            data-state={states[index]}
            data-first={
              index > 0 && rank.node_rank !== ranks[index - 1].node_rank
            }
            aria-label={trans.__(
              'Rank %1: %2',
              rank.rank,
              rankStateText(states[index], trans)
            )}
            tabIndex={rank === chosen ? 0 : -1}
            onFocus={() => setAt(index)}
            onPointerEnter={() => setAt(index)}
            onClick={() => showRank(rank.rank)}
          >
            {ranks.length <= 64 ? rank.rank : ''}
          </button>
        ))}
      </div>
      <RankLine
        {...props}
        rank={chosen}
        state={stateOf(chosen, silent)}
        isPointed={isPointed}
      />
    </section>
  );
}

function RankLine(
  props: IRankStripProps & {
    rank: IRankStatus;
    state: string;
    isPointed: boolean;
  }
): JSX.Element {
  const { isPointed, loadLine, rank, resources, state, streams, trans } = props;
  const stream = streams[streams.length - 1]?.streams.find(
    one => one.rank === rank.rank
  );
  const line = useLastLine(rank.rank, isPointed, stream?.size ?? 0, loadLine);
  const memory = resources?.series.find(
    one => one.kind === 'memory' && one.rank === rank.rank
  );
  const isRunning = state === 'running' || state === 'silent';
  const since =
    isRunning && stream?.last_at
      ? spanText(secondsBetween(stream.last_at, null), trans)
      : null;
  const parts = [
    trans.__('Rank %1 on %2', rank.rank, rank.node),
    rankStateText(state, trans),
    rank.exit_code === null || rank.exit_code === 0
      ? ''
      : trans.__('exit code %1', rank.exit_code),
    since === null ? '' : trans.__('last output %1 ago', since),
    memory?.peak ? memoryText(memory.last, memory.peak, isRunning, trans) : ''
  ];
  return (
    <p className="jp-HyperPod-Ranks-line" aria-live="polite">
      <span>{parts.filter(Boolean).join(' · ')}</span>
      <code>{line ?? ''}</code>
    </p>
  );
}

function memoryText(
  last: number | null,
  peak: number,
  isRunning: boolean,
  trans: TranslationBundle
): string {
  return isRunning && last !== null
    ? trans.__('%1 of memory, peak %2', bytesText(last), bytesText(peak))
    : trans.__('peak memory %1', bytesText(peak));
}

/** The last line of the rank that is pointed at, read again when its log has grown. */
function useLastLine(
  rank: number,
  isPointed: boolean,
  size: number,
  loadLine: (rank: number) => Promise<string | null>
): string | null {
  const [found, setFound] = React.useState<{
    rank: number;
    line: string;
  } | null>(null);
  React.useEffect(() => {
    let wanted = isPointed;
    if (isPointed && size > 0) {
      loadLine(rank).then(
        line => {
          if (wanted) {
            setFound({ rank, line: line ?? '' });
          }
        },
        () => undefined // the log says what is wrong with it
      );
    }
    return () => {
      wanted = false;
    };
  }, [rank, isPointed, size, loadLine]);
  return found?.rank === rank ? found.line : null;
}

function silentRanks(streams: readonly ILogAttempt[]): ReadonlySet<number> {
  const last = streams[streams.length - 1]?.streams ?? [];
  return new Set(
    last.flatMap(one => (one.silent && one.rank !== null ? [one.rank] : []))
  );
}

function stateOf(rank: IRankStatus, silent: ReadonlySet<number>): string {
  return rank.state === 'running' && silent.has(rank.rank)
    ? 'silent'
    : rank.state;
}

function nextIndex(key: string, at: number, count: number): number | null {
  switch (key) {
    case 'ArrowRight':
    case 'ArrowDown':
      return Math.min(count - 1, at + 1);
    case 'ArrowLeft':
    case 'ArrowUp':
      return Math.max(0, at - 1);
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}

function countsText(
  states: readonly string[],
  trans: TranslationBundle
): string {
  return STATES.map(state => {
    const count = states.filter(one => one === state).length;
    return count === 0 ? '' : `${count} ${rankStateText(state, trans)}`;
  })
    .filter(Boolean)
    .join(', ');
}

function rankStateText(state: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    starting: trans.__('starting'),
    running: trans.__('running'),
    silent: trans.__('silent'),
    succeeded: trans.__('succeeded'),
    failed: trans.__('failed'),
    stopped: trans.__('stopped'),
    lost: trans.__('lost')
  };
  return texts[state] ?? state;
}
