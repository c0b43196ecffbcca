import { Signal } from '@lumino/signaling';

import schema from '../../schema/plugin.json';
import { Preferences, STANDARD } from '../settings';

/** Settings that hold some values. */
function settingsOf(values: Record<string, unknown>) {
  const owner = {};
  const changed = new Signal<object, void>(owner);
  const settings = {
    changed,
    get: (name: string) => ({ composite: values[name], user: undefined })
  };
  return settings as unknown as Parameters<Preferences['follow']>[0] & {
    changed: typeof changed;
  };
}

describe('Preferences', () => {
  it('are the schema’s defaults at first', () => {
    const defaults = Object.fromEntries(
      Object.entries(schema.properties).map(([name, { default: value }]) => [
        name,
        value
      ])
    );
    expect(defaults).toMatchObject(STANDARD);
    expect(new Preferences().value).toEqual(STANDARD);
  });

  it('follow the settings', () => {
    const values: Record<string, unknown> = { notifications: 'failures' };
    const settings = settingsOf(values);
    const preferences = new Preferences();
    let told = 0;
    preferences.changed.connect(() => told++);
    preferences.follow(settings);
    expect(preferences.value.notifications).toBe('failures');
    expect(preferences.value.logWrap).toBe(true);
    values.logWrap = false;
    values.notifications = 'nonsense';
    values.defaultQueue = ' gpu ';
    settings.changed.emit();
    expect(preferences.value).toEqual({
      ...STANDARD,
      logWrap: false,
      defaultQueue: 'gpu'
    });
    expect(told).toBe(2);
  });
});
