import { nullTranslator } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { until } from '../../__tests__/until';
import { askedOf, firstDraft, isOfOther } from '../draft';
import { FolderFields } from '../folderFields';
import {
  folderDraft,
  folderPlace,
  IFolderCluster,
  IFolderDraft,
  withMaker
} from '../folders';
import { IChoices, IPlan, IWork } from '../types';
import { isWaitingForFolders } from '../words';

const CLUSTERS: readonly IFolderCluster[] = [
  { name: 'one', kind: 'slurm' },
  { name: 'two', kind: 'slurm' },
  { name: 'pods', kind: 'kubernetes' }
];

const NO_CHOICES: IChoices = {
  domain: 'd-1',
  domains: [],
  file_systems: [],
  folder_clusters: [],
  notes: []
};

const NO_WORK: IWork = {
  number: 0,
  version: 0,
  state: 'none',
  begun_at: null,
  ended_at: null,
  asked: null,
  read: { done: 0, total: 0 },
  plan: null,
  results: { done: 0, failed: 0, left: 0 },
  problem: null
};

describe('who makes folders', () => {
  it('is asked only for what it knows', () => {
    const draft = {
      ...folderDraft(undefined),
      mounted_at: ' /fsx ',
      queue: 'cpu',
      claim: 'all',
      user: ''
    };
    expect(folderPlace(draft).mounted_at).toBeNull();
    const slurm = folderPlace(withMaker(draft, 'slurm', CLUSTERS));
    expect(slurm).toEqual({
      by: 'slurm',
      mounted_at: '/fsx',
      cluster: 'one',
      queue: 'cpu',
      namespace: null,
      claim: null,
      image: null,
      user: null
    });
    // Of the only cluster of its kind nobody has to say the name.
    const pods = folderPlace(withMaker(draft, 'kubernetes', CLUSTERS));
    expect([pods.cluster, pods.claim, pods.queue]).toEqual([null, 'all', null]);
  });

  it('makes it another plan, but for one that takes all back', () => {
    const draft = firstDraft(NO_WORK, NO_CHOICES);
    const asked = askedOf(draft);
    const folders = { ...draft.folders, by: 'here' as const, mounted_at: '/a' };
    expect(isOfOther(asked, draft)).toBe(false);
    expect(isOfOther(asked, { ...draft, folders })).toBe(true);
    const back = askedOf(draft, true);
    expect(isOfOther(back, { ...draft, folders })).toBe(false);
  });

  it('is missed where user profiles wait for folders', () => {
    const draft = firstDraft(NO_WORK, NO_CHOICES);
    const drift = [{ kind: 'profile', total: 2, differ: 1 }];
    const plan = { drift } as unknown as IPlan;
    const waits = { ...askedOf(draft), mode: 'per-user' as const };
    expect(isWaitingForFolders(waits, plan)).toBe(true);
    expect(isWaitingForFolders({ ...waits, mode: 'shared' }, plan)).toBe(false);
    const seen = { ...waits.folders, by: 'slurm' as const };
    expect(isWaitingForFolders({ ...waits, folders: seen }, plan)).toBe(false);
    const none = { drift: [{ ...drift[0], differ: 0 }] } as unknown as IPlan;
    expect(isWaitingForFolders(waits, none)).toBe(false);
  });
});

describe('the fields for it', () => {
  let widget: ReactWidget;
  let draft: IFolderDraft;

  const show = async (clusters: readonly IFolderCluster[]) => {
    draft = folderDraft(undefined);
    const trans = nullTranslator.load('hyperpod_jlab');
    const change = (now: IFolderDraft) => {
      draft = now;
      widget.update();
    };
    class Fields extends ReactWidget {
      protected override render(): JSX.Element {
        return React.createElement(FolderFields, {
          draft,
          clusters,
          change,
          trans
        });
      }
    }
    widget = new Fields();
    Widget.attach(widget, document.body);
    await until(() => labels().length > 0);
  };
  const labels = () =>
    [...widget.node.querySelectorAll('label')].map(
      one => one.firstChild?.textContent
    );
  const choose = async (by: string) => {
    const select = widget.node.querySelector('select') as HTMLSelectElement;
    select.value = by;
    select.dispatchEvent(new Event('change', { bubbles: true }));
    await until(() => draft.by === by && select.value === by);
  };

  afterEach(() => widget.dispose());

  it('are those that fit', async () => {
    await show(CLUSTERS);
    const [who] = labels();
    expect(labels()).toEqual([who]);
    await choose('slurm');
    await until(() => labels().length > 1);
    expect(labels()).toEqual([
      who,
      'Cluster',
      'Slurm partition',
      'Mount path of the whole file system on the nodes',
      'User that runs cluster jobs'
    ]);
    expect(draft.cluster).toBe('one');
    await choose('kubernetes');
    await until(() => labels().includes('Namespace of the PVC'));
    expect(labels()).toEqual([
      who,
      'Namespace of the PVC',
      'PVC for the whole file system',
      'Pod image with digest',
      'User that runs cluster jobs'
    ]);
    await choose('here');
    await until(() => labels().length === 3);
    expect(widget.node.querySelector('input')?.required).toBe(true);
  });

  it('say that there is no cluster', async () => {
    await show([]);
    await choose('slurm');
    await until(() => widget.node.querySelector('[role=note]') !== null);
    expect(labels()).not.toContain('Cluster');
  });
});
