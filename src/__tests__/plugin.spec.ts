import { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ServerConnection } from '@jupyterlab/services';
import { CommandRegistry } from '@lumino/commands';

import plugins from '..';
import { basePlugin } from '../plugin';
import { CommandIDs } from '../tokens';

/**
 * As much of an application as the plugin uses, with a server that gives one answer.
 */
function appWith(answer: Response): JupyterFrontEnd {
  const serverSettings = ServerConnection.makeSettings({
    fetch: () => Promise.resolve(answer)
  });
  return {
    commands: new CommandRegistry(),
    serviceManager: {
      serverSettings,
      events: { stream: { connect: () => true } }
    }
  } as unknown as JupyterFrontEnd;
}

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
