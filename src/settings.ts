import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { IHyperPod } from './tokens';

/**
 * Keep the client and the choice of a region in step with the user's settings.
 *
 * Settings that can't be loaded are no reason to fail: the client's defaults stay.
 */
export async function followSettings(
  registry: ISettingRegistry,
  pluginId: string,
  { client, regions }: Pick<IHyperPod, 'client' | 'regions'>
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
    regions.follow(settings);
  } catch (reason) {
    console.warn('The settings of hyperpod_jlab could not be loaded.', reason);
  }
}
