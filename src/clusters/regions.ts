import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ISignal, Signal } from '@lumino/signaling';

import { HyperPodClient, Schema } from '../api';

/** The setting's name. */
const SETTING = 'region';

/** Which regions can be chosen; `default` is asked where none is, null where none is known. */
export type IRegions = Schema<'AwsRegions'>;

/**
 * The region whose HyperPod clusters are listed, which the user's settings remember.
 */
export class RegionChoice {
  constructor(client: Pick<HyperPodClient, 'get'>) {
    this._client = client;
  }

  /** Another region is chosen. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The chosen region; null: the one that the server finds. */
  get chosen(): string | null {
    return this._chosen;
  }

  /** Take the choice from the settings, now and whenever they change. */
  follow(settings: ISettingRegistry.ISettings): void {
    const apply = () => {
      const region = settings.get(SETTING).composite;
      this._set(typeof region === 'string' ? region : '');
    };
    this._settings = settings;
    apply();
    settings.changed.connect(apply);
  }

  /** Choose a region, or none. */
  async choose(region: string | null): Promise<void> {
    this._set(region ?? '');
    await this._settings?.set(SETTING, region ?? '');
  }

  /** The regions to choose from; the server knows them without asking AWS. */
  known(): Promise<IRegions> {
    return this._client.get('aws/regions');
  }

  private _set(region: string): void {
    const chosen = region.trim() || null;
    if (chosen !== this._chosen) {
      this._chosen = chosen;
      this._changed.emit();
    }
  }

  private readonly _client: Pick<HyperPodClient, 'get'>;
  private readonly _changed = new Signal<this, void>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
  private _chosen: string | null = null;
}
