import { nullTranslator } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { until } from '../../__tests__/until';
import { AdminRights } from '../../admin/rights';
import { FakeClusterClient, list } from '../../clusters/__tests__/clusterFakes';
import { RegionChoice } from '../../clusters/regions';
import { ClusterStore } from '../../clusters/store';
import { FakeRunClient } from '../../runs/__tests__/fakes';
import { NumbersModel } from '../../training/numbersModel';
import { noTraining } from '../../runs/__tests__/fakes';
import { RunsModel } from '../../runs/model';
import { IHyperPod } from '../../tokens';
import type { IPanelActions } from '../actions';
import { HyperPodPanel } from '../panel';

/** A configured cluster, as the server sends it. */
export const LOCAL = {
  name: 'local',
  configured: true,
  orchestrator: 'local',
  default: true,
  state: 'up',
  nodes: 1,
  running: 2,
  waiting: 3
};

/**
 * The panel with fake servers; what is opened or done is written down.
 */
export class Shown {
  constructor(runClient = new FakeRunClient()) {
    this.runClient = runClient;
    this.runs = new RunsModel({ client: runClient });
    this.numbers = new NumbersModel(noTraining, this.runs);
    this.store = new ClusterStore({
      client: this.clusterClient,
      regions: this.regions,
      interval: 20,
      awsTimes: { poll: 20, soon: 5 }
    });
    this.clusterClient.answer = list(LOCAL);
  }

  readonly runClient: FakeRunClient;
  readonly clusterClient = new FakeClusterClient();
  readonly done: string[] = [];
  readonly regions = new RegionChoice({
    get: <T>() =>
      Promise.resolve({
        default: 'us-west-2',
        regions: ['eu-west-1', 'us-west-2']
      } as T)
  });
  readonly store: ClusterStore;
  readonly runs: RunsModel;
  readonly numbers: NumbersModel;
  readonly trans = nullTranslator.load('hyperpod_jlab');
  /** What differs from an application with all commands. */
  actions: Partial<IPanelActions> = {};

  get panel(): HyperPodPanel {
    if (!this._panel) {
      throw new Error('it is not shown');
    }
    return this._panel;
  }

  /** Attach the panel, and wait for clusters and runs. */
  async show(): Promise<this> {
    const hyperPod = {
      clusterClient: this.clusterClient,
      clusters: this.store,
      regions: this.regions,
      runClient: this.runClient,
      runs: this.runs,
      numbers: this.numbers,
      adminRights: new AdminRights({
        rights: () => new Promise(() => undefined)
      }),
      trans: this.trans
    } as unknown as IHyperPod;
    const tell = (what: string) => this.done.push(what);
    this._panel = new HyperPodPanel(hyperPod, {
      compare: null,
      newRun: cluster => tell(`new ${cluster}`),
      openCluster: ({ name }, tab) => tell(`cluster ${name} ${tab ?? ''}`),
      connect: ({ name }) => tell(`connect ${name}`),
      disconnect: ({ name }) => tell(`disconnect ${name}`),
      openRun: runId => tell(`run ${runId}`),
      cancel: runs => tell(`cancel ${runs.map(one => one.name).join(', ')}`),
      remove: runs => tell(`delete ${runs.map(one => one.name).join(', ')}`),
      runAgain: ({ name }) => tell(`again ${name}`),
      copyId: ({ run_id }) => tell(`copy ${run_id}`),
      openRuns: () => tell('all runs'),
      openDoctor: () => tell('doctor'),
      openLifecycleLog: () => tell('log'),
      refresh: () => {
        tell('refresh');
        return Promise.resolve();
      },
      more: () => [],
      ...this.actions
    });
    expect([this.runClient.calls, this.clusterClient.asked]).toEqual([[], []]);
    Widget.attach(this.panel, document.body);
    await until(
      () =>
        this.store.clusters !== null &&
        (this.runs.loaded || this.runs.error !== null) &&
        !this.text.includes('Loading…')
    );
    return this;
  }

  dispose(): void {
    this.panel.dispose();
    this.store.dispose();
    this.numbers.dispose();
    this.runs.dispose();
  }

  get text(): string {
    return this.panel.node.textContent ?? '';
  }

  /** The rows of the section with a label. */
  rows(section: string): HTMLElement[] {
    return Array.from(
      this.panel.node.querySelectorAll<HTMLElement>(
        `section[aria-label="${section}"] .jp-HyperPod-Row-main`
      )
    );
  }

  /** The names of its rows. */
  names(section: string): (string | null | undefined)[] {
    return this.rows(section).map(
      one => one.querySelector('.jp-HyperPod-Row-name')?.textContent
    );
  }

  button(text: string): HTMLButtonElement | undefined {
    return Array.from(this.panel.node.querySelectorAll('button')).find(
      one => one.textContent === text || one.title === text
    );
  }

  private _panel: HyperPodPanel | null = null;
}

/** Press a key on an element. */
export function press(
  on: Element | null,
  key: string,
  keys: KeyboardEventInit = {}
): void {
  on?.dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, ...keys })
  );
}

/** The entries of the menu that is open. */
export function menuEntries(): HTMLElement[] {
  return Array.from(
    document.querySelectorAll<HTMLElement>('.lm-Menu-item')
  ).filter(item => item.textContent);
}
