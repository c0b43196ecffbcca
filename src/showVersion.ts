import { Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { JSONObject } from '@lumino/coreutils';

import { fetchVersion, HyperPodClient } from './api';

/**
 * Show the server extension's version, and return it as JSON for callers that are programs.
 */
export async function showVersion(
  client: HyperPodClient,
  trans: TranslationBundle
): Promise<JSONObject> {
  const found = await fetchVersion(client);
  Notification.info(trans.__('HyperPod server extension %1', found.version), {
    autoClose: 5000
  });
  return { version: found.version, api: found.api };
}
