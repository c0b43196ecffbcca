import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { Preferences } from '../settings';
import { ILogClient } from './client';
import { LogChoice, LogFeed } from './feed';
import { filterOf, finderOf, LogLevel } from './pattern';
import { formatRanks, parseRanks } from './ranks';
import { LogSearch } from './search';
import { LogTimeline } from './timeline';
import { ILogAttempt, ILogStream } from './types';
import { DEFAULT_CAPACITY } from './window';

/** A larger window, by this factor, where many rows may be folded into one. */
const FOLDED_CAPACITY = 8;

/** Who has fallen silent is asked for this often while others write. */
const STREAMS_INTERVAL_MS = 30_000;

/** As often while ranks write that are not in the list yet: at a run's start they come one after the other. */
const NEW_RANKS_INTERVAL_MS = 1_000;

/** Times in Unix seconds. */
export interface ITimeRange {
  readonly begin: number;
  readonly end: number;
}

/**
 * What a log viewer shows and how: its feed, its search, what can be chosen, and how lines look.
 */
export class LogViewModel implements IDisposable {
  constructor(options: LogViewModel.IOptions) {
    this.client = options.client;
    this._preferences = options.preferences ?? new Preferences();
    const looks = this._preferences.value;
    this._folds = looks.logFold;
    this._foldsNodes = looks.logFoldLauncher;
    this._showsTime = looks.logTimestamps;
    this._wraps = looks.logWrap;
    this.runId = options.runId;
    this.feed = new LogFeed(options);
    this.search = new LogSearch(options.client, this.feed);
    this.timeline = new LogTimeline(options.client, this.feed);
    this.feed.stateChanged.connect(this._emit, this);
    this.feed.changed.connect(this._onLines, this);
    this.search.changed.connect(this._emit, this);
    this.client.connectionChanged.connect(this._emit, this);
  }

  readonly client: ILogClient;
  readonly runId: string;
  readonly feed: LogFeed;
  readonly search: LogSearch;
  readonly timeline: LogTimeline;

  /** Anything but the rows changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What can be chosen. */
  get attempts(): readonly ILogAttempt[] {
    return this._attempts;
  }

  /** The chosen attempt; undefined for all. */
  get attempt(): number | undefined {
    return this.feed.request.attempt;
  }

  /** The chosen ranks as text; empty for all. */
  get ranks(): string {
    return formatRanks(this.feed.request.ranks);
  }

  /** The streams of the chosen attempt, or of the last one. */
  get streams(): readonly ILogStream[] {
    const number = this.attempt;
    const attempt =
      number === undefined
        ? this._attempts[this._attempts.length - 1]
        : this._attempts.find(item => item.number === number);
    return attempt?.streams ?? [];
  }

  /** The ranks that are there, in rising order. */
  get knownRanks(): readonly number[] {
    const ranks = this.streams.flatMap(({ rank }) => rank ?? []);
    return [...new Set(ranks)].sort((one, other) => one - other);
  }

  /** Chosen ranks that are not there; none before it is known which are. */
  get absent(): readonly number[] {
    const known = new Set(this.knownRanks);
    const chosen = known.size > 0 ? (this.feed.request.ranks ?? []) : [];
    return chosen.filter(rank => !known.has(rank));
  }

  /** Ranks that say nothing although others do. */
  get silent(): readonly number[] {
    return this.streams
      .filter(stream => stream.silent && stream.rank !== null)
      .map(stream => stream.rank ?? 0);
  }

  /** Only lines that match what is looked for are shown. */
  get filters(): boolean {
    return this._filters;
  }

  set filters(value: boolean) {
    this._filters = value;
    this._changed.emit();
    this._applyFilter();
  }

  /** Only lines of these levels are shown; none: all lines. */
  get levels(): ReadonlySet<LogLevel> {
    return this.search.levels;
  }

  /** Show lines of a level only (and of others that are chosen), or no longer so. */
  toggleLevel(level: LogLevel): void {
    const levels = new Set(this.levels);
    if (!levels.delete(level)) {
      levels.add(level);
    }
    this.search.levels = levels;
    this._applyFilter();
    void this.search.find(this.search.text, false);
    this._emit();
  }

  /** The lines that are shown are chosen by what they say. */
  get isFiltered(): boolean {
    return this.feed.request.grep !== undefined;
  }

  /** Look for a text, or a regular expression; its first line is shown, or only lines with it are. */
  async find(text: string, isRegex = this.search.isRegex): Promise<void> {
    this.search.isRegex = isRegex;
    const found = this.search.find(text, !this._filters);
    if (this._filters) {
      this._applyFilter();
    }
    await found;
  }

  /** Where the shown lines are as one file; null where they can't be had. */
  get downloadUrl(): string | null {
    return this.client.downloadUrl?.(this.feed.request) ?? null;
  }

  /** Where the exact bytes of each chosen log are, in an archive; null where they can't be had. */
  get archiveUrl(): string | null {
    return this.client.archiveUrl?.(this.feed.request) ?? null;
  }

  /** Where the chosen stream's exact bytes are; null while more than one is chosen. */
  get rawUrl(): string | null {
    const { ranks } = this.feed.request;
    const fits = this.streams.filter(stream =>
      ranks ? stream.rank !== null && ranks.includes(stream.rank) : true
    );
    const spoken = fits.filter(stream => ranks || stream.rank !== null);
    if (spoken.length !== 1) {
      return null;
    }
    const [{ node_rank: nodeRank, rank }] = spoken;
    const last = this._attempts[this._attempts.length - 1].number;
    const attempt = this.attempt ?? last;
    return (
      this.client.rawUrl?.(this.runId, { attempt, nodeRank, rank }) ?? null
    );
  }

  /** Long lines go on in the next row. */
  get wraps(): boolean {
    return this._wraps;
  }

  set wraps(value: boolean) {
    this._wraps = value;
    this._changed.emit();
  }

  /** The run is no more: what was read of its log stays. */
  get removed(): boolean {
    return this._removed;
  }

  set removed(value: boolean) {
    if (value !== this._removed) {
      this._removed = value;
      if (value) {
        this.feed.suspend();
      } else {
        void this.feed.resume();
      }
      this._changed.emit();
    }
  }

  /** Each line has its time in front. */
  get showsTime(): boolean {
    return this._showsTime;
  }

  set showsTime(value: boolean) {
    this._showsTime = value;
    this._changed.emit();
  }

  /** The log has lines of more than one rank, as far as is chosen. */
  get hasRanks(): boolean {
    const { ranks } = this.feed.request;
    const spoken = this.streams.filter(stream => stream.rank !== null);
    return spoken.length > 1 && ranks?.length !== 1;
  }

  /** Ranks that say the same are to be one row. */
  get folds(): boolean {
    return this._folds;
  }

  set folds(value: boolean) {
    this._folds = value;
    void this._preferences.keep('logFold', value);
    this._emit();
  }

  /** They are one row: there are ranks to fold. */
  get foldsNow(): boolean {
    return this._folds && this.hasRanks;
  }

  /** Lines of launchers are to be one row. */
  get foldsNodes(): boolean {
    return this._foldsNodes;
  }

  set foldsNodes(value: boolean) {
    this._foldsNodes = value;
    void this._preferences.keep('logFoldLauncher', value);
    this._emit();
  }

  /** They are one row: beside those of ranks, which are what is looked for. */
  get foldsNodesNow(): boolean {
    const speaks = ({ rank, size }: ILogStream) => rank !== null && size > 0;
    return this._foldsNodes && !this.isFiltered && this.streams.some(speaks);
  }

  /** The log's last line is in view. */
  get endSeen(): boolean {
    return this._endSeen;
  }

  set endSeen(value: boolean) {
    this._endSeen = value;
    this._changed.emit();
  }

  /** When the lines in view were written; null where that is not known. */
  get viewed(): ITimeRange | null {
    return this._viewed;
  }

  set viewed(value: ITimeRange | null) {
    this._viewed = value;
    this._viewedChanged.emit();
  }

  get viewedChanged(): ISignal<this, void> {
    return this._viewedChanged;
  }

  /** There are logs of nodes, beside those of ranks. */
  get hasNodeLogs(): boolean {
    return this.streams.some(stream => stream.rank === null);
  }

  /** The nodes' own logs are among the lines: as it was chosen, else unless ranks are. */
  get showsNodeLogs(): boolean {
    const { nodeLogs, ranks } = this.feed.request;
    return nodeLogs ?? ranks === undefined;
  }

  set showsNodeLogs(value: boolean) {
    void this._choose({ nodeLogs: value });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this.client.connectionChanged.disconnect(this._emit, this);
      this.search.dispose();
      this.timeline.dispose();
      this.feed.dispose();
      Signal.clearData(this);
    }
  }

  /** Begin to show the log. */
  async start(): Promise<void> {
    await Promise.all([this.feed.follow(), this.loadStreams()]);
  }

  /** Read the options of the filters again. */
  async loadStreams(): Promise<void> {
    this._askedAt = performance.now();
    try {
      const attempts = await this.client.streams(this.runId);
      if (!this._isDisposed) {
        this._attempts = attempts;
        this._emit();
      }
    } catch {
      // Without the list everything is shown still; the feed tells what is wrong.
    }
  }

  /**
   * Choose ranks by a text such as `0-3, 7`.
   *
   * @returns whether it could be understood
   */
  chooseRanks(text: string): boolean {
    const ranks = parseRanks(text);
    if (ranks === null) {
      return false;
    }
    if (formatRanks(ranks) !== this.ranks) {
      void this._choose({ ranks });
      if (this.absent.length > 0) {
        // The list may be of an earlier time.
        void this.loadStreams();
      }
    }
    return true;
  }

  /** Choose an attempt; undefined for all. */
  chooseAttempt(attempt: number | undefined): void {
    void this._choose({ attempt });
  }

  private async _choose(change: LogChoice): Promise<void> {
    const { runId, ...choice } = this.feed.request;
    void runId;
    const chosen = this.feed.choose({ ...choice, ...change });
    if (this.search.text !== '' && !('grep' in change)) {
      // What was found was among other lines.
      void this.search.find(this.search.text, false);
    }
    await chosen;
  }

  /** Show the lines that are wanted by what they say. A pattern that is not whole yet changes nothing. */
  private _applyFilter(): void {
    const pattern = this._filters ? this.search.pattern : '';
    const filter = filterOf(pattern, this.levels);
    const { grep, ignoreCase } = this.feed.request;
    const isNew = filter.grep !== grep || filter.ignoreCase !== ignoreCase;
    if (isNew && finderOf(pattern)) {
      void this._choose(filter);
    }
  }

  /** A rank is silent when others write: then is the time to ask. */
  private _onLines(): void {
    if (!this.feed.following) {
      return;
    }
    const isNew = this._isNewRank();
    const interval = isNew ? NEW_RANKS_INTERVAL_MS : STREAMS_INTERVAL_MS;
    const isOld = performance.now() - this._askedAt > interval;
    if (isOld && (isNew || this.hasRanks)) {
      void this.loadStreams();
    }
  }

  /** The newest line is of a rank that is not in the list. */
  private _isNewRank(): boolean {
    const { window } = this.feed;
    const origin = window.row(window.end - 1)?.origin;
    if (!origin || origin.rank === null) {
      return false;
    }
    const { index, rank } = origin;
    return !this.streams.some(
      stream => stream.rank === rank && stream.index === index
    );
  }

  private _emit(): void {
    this.feed.window.capacity =
      DEFAULT_CAPACITY * (this.foldsNow ? FOLDED_CAPACITY : 1);
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private readonly _viewedChanged = new Signal<this, void>(this);
  private _viewed: ITimeRange | null = null;
  private _attempts: readonly ILogAttempt[] = [];
  private _askedAt = 0;
  private readonly _preferences: Preferences;
  private _folds: boolean;
  private _foldsNodes: boolean;
  private _filters = false;
  private _endSeen = true;
  private _removed = false;
  private _wraps: boolean;
  private _showsTime: boolean;
  private _isDisposed = false;
}

export namespace LogViewModel {
  export interface IOptions {
    client: ILogClient;
    runId: string;
    /** How lines look at first; what is folded by hand is kept there. */
    preferences?: Preferences;
  }
}
