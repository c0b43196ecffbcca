import type { ICluster } from '../clusters/types';
import type { IMenuEntry } from '../components/menu';
import type { IListActions } from '../runs/listMenu';

/**
 * What the panel does with the application. What is null has no command here.
 */
export interface IPanelActions extends IListActions {
  /** Ask what to run; on a cluster, or on any. */
  readonly newRun: ((cluster: string | null) => void) | null;
  openCluster(cluster: ICluster, tab?: string): void;
  /** Write a cluster of AWS into the configuration, once the user has seen what is written. */
  connect(cluster: ICluster): void;
  /** Remove a cluster from the configuration, once the user agrees. */
  disconnect(cluster: ICluster): void;
  readonly openRuns: (() => void) | null;
  openDoctor(): void;
  openLifecycleLog(): void;
  /** Ask the schedulers and AWS now. */
  refresh(): Promise<void>;
  /** The entries of the panel's menu. */
  more(): readonly (IMenuEntry | null)[];
}
