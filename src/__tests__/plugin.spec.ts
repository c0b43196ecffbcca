import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ServerConnection } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';

import plugins from '..';
import { HyperPodClient } from '../api';
import { VERSION } from '../api/generated/version';
import { checkVersion } from '../checkVersion';
import { basePlugin } from '../plugin';
import { CommandIDs } from '../tokens';

/**
 * As much of an application as the plugin uses, with a server that gives one answer.
 */
function appWith(answer: Response): JupyterFrontEnd {
  const serverSettings = ServerConnection.makeSettings({
    fetch: () => Promise.resolve(answer.clone())
  });
  return {
    commands: new CommandRegistry(),
    restored: Promise.resolve(),
    serviceManager: {
      serverSettings,
      events: { stream: { connect: () => true } }
    }
  } as unknown as JupyterFrontEnd;
}

describe('the version of the page', () => {
  afterEach(() => Notification.dismiss());

  async function check(version: string): Promise<Notification.INotification[]> {
    const answer = new Response(JSON.stringify({ version, api: 1 }));
    const { serverSettings } = appWith(answer).serviceManager;
    const trans = nullTranslator.load('hyperpod_jlab');
    await checkVersion(new HyperPodClient(serverSettings), trans, reload);
    return Notification.manager.notifications;
  }
  const reload = jest.fn();

  it('is not spoken of where the server has the same', async () => {
    expect(await check(VERSION)).toEqual([]);
  });

  it('that differs from the server’s is a reason to reload', async () => {
    const [told] = await check('99.0.0rc1');
    expect(told.message).toContain('99.0.0rc1');
    expect(told.options.actions?.[0].label).toBe('Reload');
    told.options.actions?.[0].callback(new MouseEvent('click'));
    expect(reload).toHaveBeenCalledTimes(1);
  });
});

describe('the base plugin', () => {
  it('is exported', () => {
    expect(plugins).toContain(basePlugin);
  });

  it('shows and returns the version', async () => {
    const app = appWith(new Response('{"version": "1.2.3", "api": 1}'));
    void basePlugin.activate(app, null, null, null);
    const result: unknown = await app.commands.execute(CommandIDs.showVersion);
    expect(result).toEqual({ version: '1.2.3', api: 1 });
    const messages = Notification.manager.notifications.map(n => n.message);
    expect(messages).toContainEqual(expect.stringContaining('1.2.3'));
  });

  it('rejects when the server refuses', async () => {
    const app = appWith(
      new Response('{"code": "denied", "message": "no"}', { status: 403 })
    );
    void basePlugin.activate(app, null, null, null);
    await expect(
      app.commands.execute(CommandIDs.showVersion)
    ).rejects.toMatchObject({ code: 'denied', status: 403 });
  });
});
