import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, Schema } from '../api';
import { ICluster } from '../clusters/types';
import { IRun } from '../runs/types';
import { Availability } from './availability';
import { choicesOf } from './choices';
import {
  bodyOf,
  effectiveTexts,
  EMPTY_DRAFT,
  IDraft,
  openSecrets,
  problemsOf,
  settingsOf,
  sizeOf
} from './draft';
import { IKept } from './drafts';
import { fieldsOf, IField } from './fields';
import {
  findingsOf,
  foundProblems,
  isAnswered,
  serverProblems
} from './findings';
import { IFix, textsOfFix } from './fixes';
import { Comparison, IBefore, IChanges } from './history';
import { IPreset, IStart, withoutName } from './memory';
import { ISubmitOptions } from './options';
import { COST_NOT_CONFIRMED } from './overLimit';
import { Previewer } from './previewer';
import { newRunId } from './runId';
import { sendRun } from './sending';
import { fileSource, ISubmitSource, sourceProblem } from './source';
import { ISize, queueOf } from './starting';
import { Trust } from './trust';
import { Choices, IFinding, IPreview, ISubmitBody } from './types';
import { Texts, textsOf } from './values';

/** Milliseconds of rest before what was typed is looked at. */
const DELAY = 350;

/**
 * The submit form: its values, the preview, and submitting.
 */
export class SubmitModel implements IDisposable {
  constructor(options: ISubmitOptions) {
    this._options = options;
    this._source = options.source;
    this._draft = { ...EMPTY_DRAFT, whole: options.isWhole ?? false };
    this._trust = new Trust(options.source.owner);
    this._comparison = new Comparison(options.source);
    this.availability = new Availability(options.clusters);
    this.availability.changed.connect(this._emit, this);
    this._previewer = new Previewer(options.client, options.delay ?? DELAY);
    this._previewer.changed.connect(this._onPreviewed, this);
  }

  /** What is free on the clusters. */
  readonly availability: Availability;

  /** What is to be run. */
  get source(): ISubmitSource {
    return this._source;
  }

  /** Whether the user says in the form what is to be run. */
  get isOpen(): boolean {
    return this._options.findSource !== undefined;
  }

  /** Anything changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The fields, once the schema is there. */
  get fields(): readonly IField[] {
    return this._fields;
  }

  /** A field by its place in the spec. */
  field(path: string): IField | null {
    return this._fields.find(field => field.path === path) ?? null;
  }

  get clusters(): readonly ICluster[] {
    return this._clusters;
  }

  /** What schedules on the chosen cluster. */
  get orchestrator(): string {
    const { cluster } = this._draft;
    const chosen = this._clusters.find(one => one.name === cluster);
    return chosen?.orchestrator ?? '';
  }

  /** What is free on the chosen cluster; null as long as that is not known. */
  get overview(): Schema<'ClusterOverview'> | null {
    return this.availability.of(this._draft.cluster);
  }

  /** The queue that counts. */
  get queue(): Schema<'Queue'> | null {
    return queueOf(this.overview, this.texts.queue ?? '');
  }

  /** How big the run is, with what counts where nothing is typed in. */
  get size(): ISize {
    return sizeOf(this.texts);
  }

  /** Names that the chosen cluster knows, to be proposed, by field. */
  get choices(): Choices {
    return this._choices;
  }

  get presets(): readonly IPreset[] {
    return this._presets;
  }

  /** The settings that the form was opened with, other than the last ones. */
  get start(): IStart | null {
    return this._options.start ?? null;
  }

  /** The settings of the last run of this file. */
  get last(): IStart | null {
    return this._last;
  }

  get draft(): IDraft {
    return this._draft;
  }

  get texts(): Texts {
    return effectiveTexts(this._draft);
  }

  get preview(): IPreview | null {
    return this._previewer.preview;
  }

  /** The preview is of what was there before the last change. */
  get isStale(): boolean {
    return this._previewer.isStale;
  }

  /** How many fields keep the run from being sent. */
  get problemCount(): number {
    return Object.keys(this.problems).length;
  }

  /** It can't be sent as it is. As long as that is being looked at, it may be. */
  get isBlocked(): boolean {
    return (
      this.isDistrusted ||
      this._hasProblems() ||
      (!this.busy && this._isRefused())
    );
  }

  /** A preview is waited for. */
  get busy(): boolean {
    return this._previewer.busy;
  }

  /** The run is being sent. */
  get sending(): boolean {
    return this._sending;
  }

  /** Why the form can't be shown, or what was typed can't be sent. */
  get error(): ApiError | null {
    return this._error ?? this._previewer.error;
  }

  /** The user changed something. */
  get isTouched(): boolean {
    return this._isTouched;
  }

  /** What the form says, to go on with later. */
  get kept(): IKept {
    const { cluster, smoke, texts } = this._draft;
    return { cluster, smoke, texts, source: this._source };
  }

  /** What the form said when it was closed the last time; null where it was sent then. */
  get draftBefore(): IKept | null {
    return this._options.kept ?? null;
  }

  /** The form is there. */
  get ready(): boolean {
    return this._fields.length > 0;
  }

  /** What is wrong with single fields, by path; empty where a finding says it. */
  get problems(): Readonly<Record<string, string>> {
    return {
      ...(this.busy ? {} : foundProblems(this.findings, this._fields)),
      ...serverProblems(this.error, this._fields),
      ...this._typedProblems()
    };
  }

  /** What was found, the worst first. What `foreignOwner` tells is left out, unless the confirmation has not helped. */
  get findings(): readonly IFinding[] {
    const { trans } = this._options;
    const preview = this.isStale ? null : this.preview;
    const all = findingsOf(preview, this.error, this.source, trans);
    const shown =
      this.costQuestion === null
        ? all
        : all.filter(({ code }) => code !== COST_NOT_CONFIRMED);
    const hasAnswer = this._draft.trusted && !this.busy;
    return hasAnswer ? shown : this._trust.withoutAsked(shown);
  }

  /** That the run may cost more than the limit, once it was sent: sent again, the user agrees. */
  get costQuestion(): string | null {
    return this._costQuestion;
  }

  /** The other user whose code would run; null as long as the server has not said that it is another's. */
  get foreignOwner(): string | null {
    return this._trust.owner;
  }

  /** Another user's code, and this user has not confirmed that it may run. */
  get isDistrusted(): boolean {
    return this.foreignOwner !== null && !this._draft.trusted;
  }

  /** What is different from the last run; null when there is none. */
  get changes(): IChanges | null {
    return (
      this._before &&
      this._comparison.changes(
        this._before,
        this._fields,
        this._draft,
        this.preview
      )
    );
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._previewer.dispose();
      this.availability.dispose();
      Signal.clearData(this);
    }
  }

  /** Read what the form is made of, and look at what it says; whoever asks meanwhile waits for the same. */
  load(): Promise<void> {
    this._loading ??= this._load().finally(() => (this._loading = null));
    return this._loading;
  }

  /** Fill the form again; null for default settings. */
  begin(start: IStart | null): void {
    const named = this._clusters.find(one => one.name === start?.cluster);
    const standard = this._standardCluster();
    const texts = this._standardTexts(standard);
    this._draft = {
      ...this._draft,
      cluster: (named ?? standard)?.name ?? null,
      texts: start ? textsOf(this._fields, start.spec) : texts,
      smoke: false
    };
    this._look(0);
    void this._readChoices();
  }

  /** Go on with what the form said when it was closed; on another cluster, where one is asked for. */
  resume({ cluster, smoke, texts }: IKept, wanted: string | null): void {
    this._isTouched = true;
    this._draft = { ...this._draft, cluster: wanted ?? cluster, smoke, texts };
    this._look(0);
    void this._readChoices();
  }

  /** Type something into fields. */
  set(texts: Texts): void {
    this._isTouched = true;
    this._draft = {
      ...this._draft,
      texts: { ...this._draft.texts, ...texts }
    };
    this._look();
  }

  setCluster(cluster: string): void {
    this._isTouched = true;
    this._draft = { ...this._draft, cluster };
    this._look(0);
    void this._readChoices();
  }

  /** Run something else. */
  setSource(source: ISubmitSource): void {
    this._isTouched = true;
    this._source = source;
    this._comparison = new Comparison(source);
    this._look();
  }

  /** Run a file; its path is wrong where nothing can run it. */
  async setFile(path: string): Promise<void> {
    const { findSource } = this._options;
    this._wanted = path;
    const none = fileSource(path, {});
    // `problems` reports a file that cannot be run.
    const found = await findSource?.(path).catch(() => none);
    if (this._wanted === path) {
      this.setSource(found ?? none);
    }
  }

  /** Look again, at free resources too. */
  recheck(): void {
    this._look(0);
  }

  /** Tick or untick what the form asks beside its fields. */
  choose(part: Partial<Pick<IDraft, 'smoke' | 'trusted' | 'whole'>>): void {
    this._isTouched ||= part.smoke !== undefined;
    this._draft = { ...this._draft, ...part };
    this._look(0);
  }

  setSecret(name: string, value: string): void {
    const secrets = { ...this._draft.secrets, [name]: value };
    this._draft = { ...this._draft, secrets };
    this._look();
  }

  /** Secrets that need a value. */
  get openSecrets(): readonly string[] {
    return openSecrets(this._draft.texts);
  }

  /** Do what a finding's button says. */
  async fix(fix: IFix): Promise<void> {
    if (fix.save) {
      await this.source.editor?.save();
    }
    this.set(textsOfFix(fix, this._fields));
  }

  /** Keep the settings under a name, for the files of this folder and below. */
  async savePreset(name: string): Promise<IPreset> {
    const { memory, trans } = this._options;
    const path = this.source.path ?? '';
    const project = path.split('/').slice(0, -1).join('/');
    const spec = settingsOf(this._fields, this._draft.texts, trans);
    const { cluster } = this._draft;
    const preset = withoutName({ name, project, cluster, spec });
    await memory.savePreset(preset);
    this._presets = await memory.presets(path);
    this._emit();
    return preset;
  }

  async removePreset(preset: IPreset): Promise<void> {
    const { memory } = this._options;
    await memory.removePreset(preset);
    this._presets = await memory.presets(this.source.path ?? '');
    this._emit();
  }

  /**
   * Send the run. Null when it can't be sent as it is: `error`, `problems` and `findings` say why.
   */
  async submit(): Promise<IRun | null> {
    const { client, memory, trans } = this._options;
    if (this._sending || !this.ready || this.isBlocked) {
      this._emit();
      return null;
    }
    this._previewer.stop();
    this._sending = true;
    this._error = null;
    this._emit();
    const draft = this._draft;
    const body = {
      ...this._body(),
      ...(this.costQuestion !== null && { accept_cost: true })
    };
    try {
      const run = await sendRun(client, body, this._options.pauses);
      if (this.source.path !== null) {
        const spec = settingsOf(this._fields, draft.texts, trans);
        const last = { runId: run.run_id, cluster: run.cluster, spec };
        await memory.remember(this.source.path, last).catch(() => undefined);
      }
      return run;
    } catch (reason) {
      const { code, message } = ApiError.of(reason);
      if (code === COST_NOT_CONFIRMED) {
        // Of what was changed meanwhile, the cost is another one.
        this._costQuestion = draft === this._draft ? message : null;
      } else {
        this._fail(reason);
      }
      return null;
    } finally {
      this._sending = false;
      this._emit();
    }
  }

  private async _load(): Promise<void> {
    const { client, clusters, history, memory, start } = this._options;
    this._error = null;
    try {
      const [schema, found, last, lastCluster, presets] = await Promise.all([
        client.schema(),
        clusters.configured(),
        history.last(this.source),
        memory.lastCluster(),
        memory.presets(this.source.path ?? '')
      ]);
      this._fields = fieldsOf(schema);
      this._clusters = found;
      this._last = last;
      this._presets = presets;
      const isElsewhere =
        lastCluster !== null && !this._options.preferences?.defaultCluster;
      if (this._options.kept) {
        this.resume(this._options.kept, start?.cluster ?? null);
      } else {
        this.begin(
          start ??
            last ??
            (isElsewhere ? { cluster: lastCluster, spec: {} } : null)
        );
      }
      found.forEach(({ name }) => void this.availability.renew(name, false));
    } catch (reason) {
      this._fail(reason);
      return;
    }
    this._before = await history.before(this.source);
    // Sent from elsewhere, such as a terminal.
    this._last ??=
      this.source.cloneOf === null ? withoutName(this._before) : null;
    await this._compareScript();
    this._emit();
  }

  /** The cluster to begin with: the preferred one, or else the configured one. */
  private _standardCluster(): ICluster | undefined {
    const wanted = this._options.preferences?.defaultCluster ?? '';
    return (
      this._clusters.find(one => one.name === wanted) ??
      this._clusters.find(one => one.default) ??
      this._clusters[0]
    );
  }

  /** The preferred queue, where it is one of the preferred cluster. */
  private _standardTexts(cluster: ICluster | undefined): Texts {
    const { defaultCluster: wanted = '', defaultQueue: queue = '' } =
      this._options.preferences ?? {};
    const isThere = wanted === '' || wanted === cluster?.name;
    return queue !== '' && isThere ? { queue } : {};
  }

  private _hasProblems(): boolean {
    return Object.keys(this._typedProblems()).length > 0;
  }

  /** What is wrong before the server is asked, by path. */
  private _typedProblems(): Readonly<Record<string, string>> {
    const { trans } = this._options;
    const typed = problemsOf(this._fields, this._draft, trans);
    const source = sourceProblem(this._source, trans);
    return source === null ? typed : { source, ...typed };
  }

  /** The server said no to what the form says now. */
  private _isRefused(): boolean {
    const error = this._previewer.error;
    return (
      (error !== null && isAnswered(error)) ||
      this.findings.some(({ level }) => level === 'error')
    );
  }

  /** The request; as long as it is the same, its run is the same too. */
  private _body(): ISubmitBody {
    const { trans } = this._options;
    const make = (runId: string) =>
      bodyOf(runId, this.source, this._fields, this._draft, trans);
    const content = JSON.stringify(make(''));
    if (content !== this._content) {
      this._content = content;
      this._runId = newRunId();
    }
    return make(this._runId);
  }

  private _look(delay?: number): void {
    this._error = null;
    this._costQuestion = null;
    void this.availability.renew(this._draft.cluster, true);
    if (this._hasProblems()) {
      this._previewer.hold();
    } else {
      this._previewer.ask(() => this._body(), delay);
    }
    this._emit();
  }

  private _onPreviewed(): void {
    this._trust.hear((this.preview?.findings ?? []).map(({ code }) => code));
    void this._compareScript();
    this._emit();
  }

  private async _compareScript(): Promise<void> {
    const before = this._before;
    if (before && this.preview && this.source.spec.kind === 'script') {
      this._before = await this._options.history.withScript(
        before,
        this.preview
      );
      if (before !== this._before) {
        this._emit();
      }
    }
  }

  private async _readChoices(): Promise<void> {
    const { cluster } = this._draft;
    this._choices = {};
    const choices = await choicesOf(this._options.client, cluster);
    if (cluster === this._draft.cluster) {
      this._choices = choices;
      this._emit();
    }
  }

  private _fail(reason: unknown): void {
    this._error = ApiError.of(reason);
    this._trust.hear([this._error.code]);
    this._emit();
  }

  private _emit(): void {
    if (!this._isDisposed) {
      this._changed.emit();
    }
  }

  private readonly _options: ISubmitOptions;
  private _source: ISubmitSource;
  private _comparison: Comparison;
  /** The file that was typed last. */
  private _wanted = '';
  private readonly _previewer: Previewer;
  private readonly _trust: Trust;
  private readonly _changed = new Signal<this, void>(this);
  private _fields: readonly IField[] = [];
  private _clusters: readonly ICluster[] = [];
  private _choices: Choices = {};
  private _presets: readonly IPreset[] = [];
  private _last: IStart | null = null;
  private _before: IBefore | null = null;
  private _draft: IDraft;
  private _error: ApiError | null = null;
  private _costQuestion: string | null = null;
  private _loading: Promise<void> | null = null;
  private _content = '';
  private _runId = newRunId();
  private _isTouched = false;
  private _sending = false;
  private _isDisposed = false;
}
