import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal } from '@lumino/signaling';

import { RegionChoice } from '../regions';

/** A plugin's settings with one value. */
class FakeSettings {
  readonly changed = new Signal<this, void>(this);
  value = '';

  get(): { composite: string; user: string } {
    return { composite: this.value, user: this.value };
  }

  set(_: string, value: string): Promise<void> {
    this.value = value;
    this.changed.emit();
    return Promise.resolve();
  }
}

describe('RegionChoice', () => {
  it('is what the settings say, and is written there', async () => {
    const choice = new RegionChoice({ get: () => new Promise(() => 0) });
    const told: (string | null)[] = [];
    choice.changed.connect(() => told.push(choice.chosen));
    const settings = new FakeSettings();
    settings.value = 'us-east-1';
    choice.follow(settings as unknown as ISettingRegistry.ISettings);
    expect(choice.chosen).toBe('us-east-1');
    await choice.choose('eu-west-1');
    expect(settings.value).toBe('eu-west-1');
    await settings.set('region', ' ');
    expect(told).toEqual(['us-east-1', 'eu-west-1', null]);
    await choice.choose(null);
    expect(told).toHaveLength(3);
  });

  it('works where there are no settings', async () => {
    const choice = new RegionChoice({ get: () => new Promise(() => 0) });
    await choice.choose('eu-west-1');
    expect(choice.chosen).toBe('eu-west-1');
  });
});
