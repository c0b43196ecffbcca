import { Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { fetchVersion, HyperPodClient } from './api';
import { VERSION } from './api/generated/version';

/**
 * Offer to reload the page where it has another version than the server: it was opened before an upgrade, or the browser
 * kept old files.
 */
export async function checkVersion(
  client: HyperPodClient,
  trans: TranslationBundle,
  reload: () => void = () => window.location.reload()
): Promise<void> {
  const { version } = await fetchVersion(client);
  if (plain(version) !== plain(VERSION)) {
    Notification.warning(
      trans.__(
        'The server runs HyperPod %1, this page runs %2. Reload the page. If this message returns, restart the server.',
        version,
        VERSION
      ),
      {
        autoClose: false,
        actions: [{ label: trans.__('Reload'), callback: reload }]
      }
    );
  }
}

/** npm writes 1.0.0-rc.1 where Python writes 1.0.0rc1. */
function plain(version: string): string {
  return version.replace(/-([a-z]+)\./, '$1');
}
