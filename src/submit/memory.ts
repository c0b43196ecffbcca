import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import {
  ReadonlyPartialJSONObject,
  ReadonlyPartialJSONValue
} from '@lumino/coreutils';

import { isRecord } from '../api';
import { JsonObject } from './types';

/** Where the settings that were used last are kept. */
const STATE_ID = 'hyperpod_jlab:submit';

/** Files of which the last settings are kept. */
const MOST_FILES = 200;

/**
 * Settings to begin with.
 */
export interface IStart {
  readonly cluster: string | null;
  /** A spec without its source. */
  readonly spec: JsonObject;
}

/**
 * What a file was run with last.
 */
export interface ILast extends IStart {
  readonly runId: string;
}

/**
 * Settings under a name, offered for all files below a folder.
 */
export interface IPreset extends IStart {
  readonly name: string;
  readonly project: string;
}

/**
 * Remembers settings: what each file was run with last, and presets.
 */
export interface ISubmitMemory {
  last(path: string): Promise<ILast | null>;
  /** The cluster of the last run of any file. */
  lastCluster(): Promise<string | null>;
  remember(path: string, last: ILast): Promise<void>;
  /** The presets for a file. */
  presets(path: string): Promise<readonly IPreset[]>;
  /** Keep a preset, in the place of one with the same name and project. */
  savePreset(preset: IPreset): Promise<void>;
  removePreset(preset: IPreset): Promise<void>;
}

/**
 * Keeps the last settings in the workspace's state, presets in the user's settings.
 */
export class SubmitMemory implements ISubmitMemory {
  constructor(
    state: IStateDB | null,
    registry: ISettingRegistry | null,
    pluginId: string
  ) {
    this._state = state;
    this._registry = registry;
    this._pluginId = pluginId;
  }

  async last(path: string): Promise<ILast | null> {
    return withoutName(toLast((await this._all())[path]));
  }

  async lastCluster(): Promise<string | null> {
    const newest = Object.values(await this._all()).pop();
    return toLast(newest)?.cluster ?? null;
  }

  async remember(path: string, last: ILast): Promise<void> {
    const others = Object.entries(await this._all()).filter(
      ([other]) => other !== path
    );
    const kept = others.slice(1 - MOST_FILES);
    const { cluster, runId, spec } = withoutName(last);
    await this._state?.save(STATE_ID, {
      ...Object.fromEntries(kept),
      [path]: { runId, cluster, spec }
    } as ReadonlyPartialJSONObject);
  }

  async presets(path: string): Promise<readonly IPreset[]> {
    const all = await this._presets();
    return all.filter(
      ({ project }) => project === '' || path.startsWith(`${project}/`)
    );
  }

  async savePreset(preset: IPreset): Promise<void> {
    const others = (await this._presets()).filter(one => !isSame(one, preset));
    await this._write([...others, preset]);
  }

  async removePreset(preset: IPreset): Promise<void> {
    const all = await this._presets();
    await this._write(all.filter(one => !isSame(one, preset)));
  }

  private async _all(): Promise<Readonly<Record<string, unknown>>> {
    const found: unknown = await this._state?.fetch(STATE_ID);
    return isRecord(found) ? found : {};
  }

  private async _presets(): Promise<readonly IPreset[]> {
    const settings = await this._registry?.load(this._pluginId);
    const found: unknown = settings?.get('presets').composite;
    return Array.isArray(found) ? found.flatMap(toPreset) : [];
  }

  private async _write(presets: readonly IPreset[]): Promise<void> {
    await this._registry?.set(
      this._pluginId,
      'presets',
      presets as unknown as ReadonlyPartialJSONValue as never
    );
  }

  private readonly _state: IStateDB | null;
  private readonly _registry: ISettingRegistry | null;
  private readonly _pluginId: string;
}

/** Settings less the run's name, which is for one piece of code and no setting of others. */
export function withoutName<T extends IStart | null>(start: T): T {
  if (!start || !('name' in start.spec)) {
    return start;
  }
  const kept = Object.entries(start.spec).filter(([field]) => field !== 'name');
  return { ...start, spec: Object.fromEntries(kept) };
}

/** What tells presets apart: folders may have some of the same name. */
export function presetKey({ name, project }: IPreset): string {
  return JSON.stringify([project, name]);
}

function isSame(one: IPreset, other: IPreset): boolean {
  return presetKey(one) === presetKey(other);
}

function toStart(value: unknown): IStart | null {
  if (!isRecord(value) || !isRecord(value.spec)) {
    return null;
  }
  const cluster = typeof value.cluster === 'string' ? value.cluster : null;
  return { cluster, spec: value.spec as JsonObject };
}

function toLast(value: unknown): ILast | null {
  const start = toStart(value);
  return start && isRecord(value) && typeof value.runId === 'string'
    ? { ...start, runId: value.runId }
    : null;
}

function toPreset(value: unknown): IPreset[] {
  const start = toStart(value);
  if (!start || !isRecord(value) || typeof value.name !== 'string') {
    return [];
  }
  const project = typeof value.project === 'string' ? value.project : '';
  return [{ ...start, name: value.name, project }];
}
