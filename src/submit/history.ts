import { ICellsClient, ISentCell } from '../notebook/client';
import { IRunClient } from '../runs/client';
import {
  cellChanges,
  fileChanges,
  ICodeChange,
  ISettingChange,
  settingChanges
} from './changes';
import { chosenCells, effectiveTexts, IDraft } from './draft';
import { IField } from './fields';
import { ILast, ISubmitMemory } from './memory';
import { ISubmitSource } from './source';
import { IPreview, JsonObject } from './types';
import { textsOf } from './values';

/** How a command names a file that went along. */
const IN_BUNDLE = '$BUNDLE/';

/**
 * The run before, to compare with.
 */
export interface IBefore {
  readonly runId: string;
  readonly cluster: string;
  readonly spec: JsonObject;
  readonly cells: readonly ISentCell[];
  /** The text of a script, by its place in the bundle. */
  readonly script: { readonly path: string; readonly text: string } | null;
}

/**
 * What is different from the run before.
 */
export interface IChanges {
  readonly runId: string;
  /** The cluster of the run before, when it is another one now. */
  readonly cluster: string | null;
  readonly settings: readonly ISettingChange[];
  /** Null when the code can't be compared. */
  readonly code: readonly ICodeChange[] | null;
}

/**
 * Finds a source's last run: the server knows it for notebooks, the workspace for other files.
 */
export class SubmitHistory {
  constructor(options: SubmitHistory.IOptions) {
    this._options = options;
  }

  /** The last run with all that is to be compared; null when there is none, or it is gone. */
  async before(source: ISubmitSource): Promise<IBefore | null> {
    const { cells, runClient } = this._options;
    try {
      const runId = source.cloneOf ?? (await this._newest(source));
      if (runId === null) {
        return null;
      }
      const run = await runClient.get(runId);
      const spec = (await runClient.spec(runId)) as JsonObject;
      return {
        runId,
        cluster: run.cluster,
        spec,
        cells:
          source.spec.kind === 'notebook'
            ? (await cells.ofRun(runId)).cells
            : [],
        script: null
      };
    } catch {
      return null; // what is gone can't be compared with
    }
  }

  /** The settings to begin with when a file was run before. */
  async last(source: ISubmitSource): Promise<ILast | null> {
    return source.path === null ? null : this._options.memory.last(source.path);
  }

  /** Add the script's text, once a preview has its path in the bundle. */
  async withScript(before: IBefore, preview: IPreview): Promise<IBefore> {
    const place = preview.command.find(
      word => word.startsWith(IN_BUNDLE) && word.endsWith('.py')
    );
    const path = place?.slice(IN_BUNDLE.length);
    if (path === undefined || before.script) {
      return before;
    }
    try {
      const { text } = await this._options.runClient.codeFile(
        before.runId,
        path
      );
      return { ...before, script: { path, text } };
    } catch {
      return before;
    }
  }

  /** The id of the newest run of a file. */
  private async _newest({ path, spec }: ISubmitSource): Promise<string | null> {
    const { cells, memory } = this._options;
    if (path === null) {
      return null;
    }
    if (spec.kind === 'notebook') {
      const [newest] = (await cells.ofNotebook(path)).runs;
      return newest?.run_id ?? null;
    }
    return (await memory.last(path))?.runId ?? null;
  }

  private readonly _options: SubmitHistory.IOptions;
}

export namespace SubmitHistory {
  export interface IOptions {
    cells: ICellsClient;
    memory: ISubmitMemory;
    runClient: IRunClient;
  }
}

/**
 * What a draft changes, looked at only as often as it can be something else: the code not while settings are typed.
 */
export class Comparison {
  constructor(source: ISubmitSource) {
    this._source = source;
  }

  /** What is different from the run before. */
  changes(
    before: IBefore,
    fields: readonly IField[],
    draft: IDraft,
    preview: IPreview | null
  ): IChanges {
    return this._all([before, fields, draft, preview], () => ({
      runId: before.runId,
      cluster: before.cluster === draft.cluster ? null : before.cluster,
      settings: settingChanges(
        fields,
        textsOf(fields, before.spec),
        effectiveTexts(draft)
      ),
      // A notebook may be edited by others meanwhile: each preview is of what it holds then.
      code: this._code([before, draft.whole, preview], () =>
        codeChanges(before, this._source, draft, preview)
      )
    }));
  }

  private readonly _source: ISubmitSource;
  private readonly _all = lastOf<IChanges>();
  private readonly _code = lastOf<IChanges['code']>();
}

/** Memoizes a result by its inputs. */
function lastOf<T>(): (parts: readonly unknown[], make: () => T) => T {
  let last: { parts: readonly unknown[]; result: T } | null = null;
  return (parts, make) => {
    if (!last || parts.some((part, at) => part !== last?.parts[at])) {
      last = { parts, result: make() };
    }
    return last.result;
  };
}

function codeChanges(
  before: IBefore,
  source: ISubmitSource,
  draft: IDraft,
  preview: IPreview | null
): readonly ICodeChange[] | null {
  if (source.cloneOf !== null) {
    return [];
  }
  if (source.spec.kind === 'notebook') {
    const cells = chosenCells(source, draft);
    return cells && cellChanges(before.cells, cells);
  }
  return before.script && preview?.parts.length === 1
    ? fileChanges(before.script.text, preview.parts[0].text)
    : null;
}
