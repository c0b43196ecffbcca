import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';

import type { IHyperPod } from './tokens';

const NOTIFICATIONS = ['all', 'failures', 'off'] as const;
const AFTER_SUBMIT = ['page', 'notebook', 'stay'] as const;

/**
 * What the user prefers, as the settings' schema has it.
 */
export interface IPreferences {
  /** Which ends of runs are notified. */
  readonly notifications: (typeof NOTIFICATIONS)[number];
  /** The cluster that the submit dialog begins with; empty: the configured one. */
  readonly defaultCluster: string;
  /** The queue that it begins with on that cluster; empty: the cluster's own. */
  readonly defaultQueue: string;
  /** What is shown once a run is submitted: its page, its log in the notebook, or nothing. */
  readonly afterSubmit: (typeof AFTER_SUBMIT)[number];
  /** How logs look at first. */
  readonly logTimestamps: boolean;
  readonly logWrap: boolean;
  readonly logFold: boolean;
  readonly logFoldLauncher: boolean;
  /** Clusters are read again and again while they are seen. */
  readonly refresh: boolean;
  /** Python kernels get the magic. */
  readonly loadMagic: boolean;
}

/** As in the schema. */
export const STANDARD: IPreferences = {
  notifications: 'all',
  defaultCluster: '',
  defaultQueue: '',
  afterSubmit: 'page',
  logTimestamps: true,
  logWrap: true,
  logFold: true,
  logFoldLauncher: true,
  refresh: true,
  loadMagic: true
};

/**
 * What the user prefers, kept in step with the settings.
 */
export class Preferences {
  /** Something is preferred in another way. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What holds now. */
  get value(): IPreferences {
    return this._value;
  }

  /** Take them from the settings, now and whenever they change. */
  follow(
    settings: Pick<ISettingRegistry.ISettings, 'changed' | 'get' | 'set'>
  ): void {
    this._settings = settings;
    const apply = () => {
      this._value = preferencesOf(name => settings.get(name).composite);
      this._changed.emit();
    };
    apply();
    settings.changed.connect(apply);
  }

  /** Prefer that logs fold, or not, from now on. */
  async keep(
    name: 'logFold' | 'logFoldLauncher',
    value: boolean
  ): Promise<void> {
    this._value = { ...this._value, [name]: value };
    this._changed.emit();
    await this._settings?.set(name, value);
  }

  private readonly _changed = new Signal<this, void>(this);
  private _settings: Pick<ISettingRegistry.ISettings, 'set'> | null = null;
  private _value = STANDARD;
}

/** What was set; the standard where nothing that fits was. */
function preferencesOf(get: (name: string) => unknown): IPreferences {
  const isOn = (name: keyof IPreferences) => get(name) !== false;
  const text = (name: keyof IPreferences) => {
    const value = get(name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const oneOf = <T extends string>(
    name: keyof IPreferences,
    [first, ...others]: readonly [T, ...T[]]
  ) => others.find(one => one === get(name)) ?? first;
  return {
    notifications: oneOf('notifications', NOTIFICATIONS),
    defaultCluster: text('defaultCluster'),
    defaultQueue: text('defaultQueue'),
    afterSubmit: oneOf('afterSubmit', AFTER_SUBMIT),
    logTimestamps: isOn('logTimestamps'),
    logWrap: isOn('logWrap'),
    logFold: isOn('logFold'),
    logFoldLauncher: isOn('logFoldLauncher'),
    refresh: isOn('refresh'),
    loadMagic: isOn('loadMagic')
  };
}

/**
 * Keep the client, the choice of a region and what is preferred in step with the user's settings.
 *
 * Settings that can't be loaded are no reason to fail: the defaults stay.
 */
export async function followSettings(
  registry: ISettingRegistry,
  pluginId: string,
  {
    client,
    preferences,
    regions
  }: Pick<IHyperPod, 'client' | 'preferences' | 'regions'>
): Promise<void> {
  try {
    const settings = await registry.load(pluginId);
    const apply = () => {
      const seconds = settings.get('requestTimeout').composite;
      if (typeof seconds === 'number') {
        client.timeout = seconds;
      }
    };
    apply();
    settings.changed.connect(apply);
    preferences.follow(settings);
    regions.follow(settings);
  } catch (reason) {
    console.warn('The settings of hyperpod_jlab could not be loaded.', reason);
  }
}
