import { TranslationBundle } from '@jupyterlab/translation';
import { Token } from '@lumino/coreutils';

import type { AdminRights } from './admin/rights';
import type { HyperPodClient } from './api';
import type { IClusterClient } from './clusters/client';
import type { ClusterStore } from './clusters/store';
import type { RegionChoice } from './clusters/regions';
import type { ILogClient } from './logs/client';
import type { LogSocket } from './logs/socket';
import type { IRunClient } from './runs/client';
import type { RunsModel } from './runs/model';
import type { Preferences } from './settings';
import type { ITrainingClient } from './training/client';
import type { NumbersModel } from './training/numbersModel';

/**
 * What the parts of the extension share.
 */
export interface IHyperPod {
  /** The server extension's client, for requests that no other client here has. */
  readonly client: HyperPodClient;
  /** Requests on clusters. */
  readonly clusterClient: IClusterClient;
  /** The clusters, for all that shows them; `watch` them while they are in view. */
  readonly clusters: ClusterStore;
  /** What the user prefers. */
  readonly preferences: Preferences;
  /** The region whose HyperPod clusters are listed. */
  readonly regions: RegionChoice;
  /** Requests on runs. */
  readonly runClient: IRunClient;
  /** The runs that this page knows; `start` it before use. */
  readonly runs: RunsModel;
  /** Requests on what runs print. */
  readonly training: ITrainingClient;
  /** The newest numbers of the runs that this page knows. */
  readonly numbers: NumbersModel;
  /** The page's one socket for logs that are followed. */
  readonly logSocket: LogSocket;
  /** Logs of runs. */
  readonly logs: ILogClient;
  /** Whether the page for admins is offered; `ask` before use. */
  readonly adminRights: AdminRights;
  /** The extension's words in the user's language. */
  readonly trans: TranslationBundle;
  /**
   * Open a run's page, or bring it to the front. A new page is a preview, whose place the next one takes, unless it is pinned.
   */
  openRun(runId: string, options?: { readonly pin: boolean }): Promise<void>;
}

/** The token of what the parts of the extension share. */
export const IHyperPod = new Token<IHyperPod>(
  'hyperpod_jlab:IHyperPod',
  'The clients and models of the HyperPod extension.'
);

/** The ids of all commands. */
export namespace CommandIDs {
  export const showVersion = 'hyperpod:show-version';
  export const openRun = 'hyperpod:open-run';
  export const cancelRun = 'hyperpod:cancel-run';
  /** What does something to a run. */
  export const actOnRun = {
    cancel: cancelRun,
    hold: 'hyperpod:hold-run',
    release: 'hyperpod:release-run',
    requeue: 'hyperpod:requeue-run',
    change: 'hyperpod:change-run'
  } as const;
  /** Curves of several runs over each other, and what differs; `{runIds}`. */
  export const compareRuns = 'hyperpod:compare-runs';
  export const listRuns = 'hyperpod:list-runs';
  /** Submits a run once more, with or without changes; `{runId}`. */
  export const repeatRun = 'hyperpod:repeat-run';
  /** All runs in a page. */
  export const openRuns = 'hyperpod:open-runs';
  export const openCluster = 'hyperpod:open-cluster';
  /** Writes a cluster of AWS into the configuration, once the user has seen what is written; `{cluster}`. */
  export const connectCluster = 'hyperpod:connect-cluster';
  /** Removes a cluster from the configuration, once the user agrees; `{cluster}`. */
  export const disconnectCluster = 'hyperpod:disconnect-cluster';
  /** Small charts of a HyperPod cluster; `{cluster, node}`. */
  export const openMetrics = 'hyperpod:open-metrics';
  /** The consequences of a node action; `{cluster, action, nodes}`. */
  export const previewOnNodes = 'hyperpod:preview-on-nodes';
  /** Asks, and does it; `{cluster, action, nodes, reason}`. */
  export const actOnNodes = 'hyperpod:act-on-nodes';
  /** `{cluster, node}`. */
  export const openNodeTerminal = 'hyperpod:open-node-terminal';
  /** What a node logged; `{cluster, node}`. */
  export const openNodeLogs = 'hyperpod:open-node-logs';
  /** Examines what a run needs; `{examine}`. */
  export const openDoctor = 'hyperpod:open-doctor';
  /** Shows the log of the script that makes this space ready. */
  export const openLifecycleLog = 'hyperpod:open-lifecycle-log';
  /** A file system and the people of a Studio domain, for those with the rights. */
  export const openAdmin = 'hyperpod:open-admin';
  /** Makes a link to the storage partition, and shows it in the file browser. */
  export const openPartition = 'hyperpod:open-partition';
  /** The file systems of the server's machine, and who can read them. */
  export const openStorage = 'hyperpod:open-storage';
  /** Copies a file's path as a cluster sees it; `{path, cluster}`. */
  export const copyPath = 'hyperpod:copy-path';
  /** Shows where the bytes of files are, with what can be done; `{paths}`. */
  export const showFileStates = 'hyperpod:show-file-states';
  /** Who used how much of the clusters, and what it cost; `{cluster}`. */
  export const openUsage = 'hyperpod:open-usage';
  /** The documentation that comes with the extension. */
  export const openDocs = 'hyperpod:open-docs';
  export const showPanel = 'hyperpod:show-panel';
  /** Asks what to run and how; `{cloneOf}` begins with another run's spec. */
  export const submit = 'hyperpod:submit';
  /** Asks for a command or a file, and how to run it; `{cluster}`. */
  export const newRun = 'hyperpod:new-run';
  export const runCells = 'hyperpod:run-cells';
  export const runNotebook = 'hyperpod:run-notebook';
  export const runAgain = 'hyperpod:run-again';
  export const runFile = 'hyperpod:run-file';
  /** Shows a run's log below its cell, where a notebook with it is open; `{runId}`. */
  export const showLogInNotebook = 'hyperpod:show-log-in-notebook';
  /** Shows a line of a cell that ran; `{runId, cell, line}`. */
  export const openCellLine = 'hyperpod:open-cell-line';
}
