import { nullTranslator } from '@jupyterlab/translation';
import { Clipboard } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { answerOf } from '../../__tests__/answers';
import { until } from '../../__tests__/until';
import { ApiError } from '../../api';
import { StorageSection } from '../section';
import { IStorage } from '../types';

const PLACE = {
  path: '/mnt/fsx',
  kind: 'lustre',
  file_system: 'fs-0123456789abcdef0',
  mounted_folder: '/alice',
  network: true,
  read_only: false,
  runs_go_here: true,
  total: 4 * 2 ** 30,
  free: 1.5 * 2 ** 30,
  isolation: {
    level: 'mount_path_only',
    words: 'mount path only',
    evidence: ['only /alice is mounted here'],
    readers: ['everybody may read']
  },
  aws: { state: 'UPDATING' },
  problem: null
};

const ANSWER = {
  partition: PLACE,
  file_systems: [
    PLACE,
    { ...PLACE, path: '/other', runs_go_here: false, read_only: true },
    { path: '/', kind: 'ext4', network: false }
  ],
  clusters: [
    { cluster: 'train', here: '/mnt/fsx', there: '/fsx/alice', reason: null },
    { cluster: 'eks', here: '/mnt/fsx', there: null, reason: 'no storage' }
  ],
  notes: ['AWS does not let you']
};

class Client {
  answer: IStorage | ApiError = answerOf('StorageOverview', ANSWER);
  asked = 0;
  opened = 0;

  overview(): Promise<IStorage> {
    this.asked += 1;
    return this.answer instanceof ApiError
      ? Promise.reject(this.answer)
      : Promise.resolve(this.answer);
  }
}

async function shown(client: Client): Promise<StorageSection> {
  const actions = { openPartition: () => (client.opened += 1) };
  const section = new StorageSection(client, actions, nullTranslator.load('x'));
  expect(client.asked).toBe(0);
  Widget.attach(section, document.body);
  await until(() => {
    const text = section.node.textContent ?? '';
    return text !== '' && !text.includes('Loading…');
  });
  return section;
}

describe('StorageSection', () => {
  it('shows file systems, isolation, paths on each side, and notes', async () => {
    const section = await shown(new Client());
    const text = section.node.textContent ?? '';
    for (const words of [
      'fs-0123456789abcdef0 /alice',
      'mount path only',
      '1.5 of 4 GiB free · stores runs · UPDATING',
      '1.5 of 4 GiB free · read-only · UPDATING',
      'everybody may read',
      'only /alice is mounted here',
      '/fsx/alice',
      'no storage',
      'AWS does not let you'
    ]) {
      expect(text).toContain(words);
    }
    // The partition once, the other one, and not the machine's disk.
    const list = section.node.querySelector('ul');
    expect(list?.querySelectorAll(':scope > li')).toHaveLength(2);
    section.dispose();
  });

  it('warns where other users are not kept out, and of runs in the old layout', async () => {
    const client = new Client();
    const warnings = async (separation: object | null) => {
      client.answer = answerOf('StorageOverview', { ...ANSWER, separation });
      const section = await shown(client);
      const lines = Array.from(
        section.node.querySelectorAll('.jp-mod-warn'),
        line => line.textContent
      );
      section.dispose();
      client.asked = 0;
      return lines;
    };
    const open = {
      parents: [],
      holds: false,
      reason: '/mnt/fsx belongs to another user (uid 7)',
      fix: 'ask an administrator: chown root /mnt/fsx',
      old_runs: 0
    };
    const well = { ...open, holds: true, reason: null, fix: null };
    expect(await warnings(open)).toEqual([
      'Warning: other users may be able to change your runs. /mnt/fsx belongs to another user (uid 7). Ask an administrator: chown root /mnt/fsx.'
    ]);
    expect(await warnings({ ...well, old_runs: 3 })).toEqual([
      '3 of your runs use the old layout. Run “hpj storage migrate”.'
    ]);
    expect(await warnings(well)).toEqual([]);
    expect(await warnings(null)).toEqual([]);
  });

  it('copies the path on a side, where there is one', async () => {
    const copied = jest
      .spyOn(Clipboard, 'copyToSystem')
      .mockImplementation(() => undefined);
    const section = await shown(new Client());
    const buttons = section.node.querySelectorAll('button');
    expect(Array.from(buttons).map(one => one.title)).toEqual([
      'Copy the path on train'
    ]);
    buttons[0].click();
    expect(copied).toHaveBeenCalledWith('/fsx/alice');
    section.dispose();
  });

  it('asks when it is looked at, and not again within minutes', async () => {
    const client = new Client();
    const section = await shown(client);
    section.hide();
    section.show();
    expect(client.asked).toBe(1);
    section.toolbar.node.querySelector('button')?.click();
    expect(client.asked).toBe(2);
    section.dispose();
  });

  it('opens the partition in the file browser', async () => {
    const client = new Client();
    const section = await shown(client);
    const all = section.toolbar.node.querySelectorAll('button');
    expect(all).toHaveLength(2);
    all[1].click();
    expect(client.opened).toBe(1);
    section.dispose();
  });

  it('says what is wrong, keeps what it had, and tries again', async () => {
    const client = new Client();
    const good = client.answer;
    client.answer = ApiError.local('network', 'gone');
    const section = await shown(client);
    client.answer = good;
    section.node.querySelector('button')?.click();
    await until(() => (section.node.textContent ?? '').includes('/alice'));
    client.answer = ApiError.local('network', 'gone');
    section.toolbar.node.querySelector('button')?.click();
    await until(() => section.node.querySelector('[role="alert"]') !== null);
    expect(section.node.textContent).toContain('/alice');
    section.dispose();
  });
});
