import type { Schema } from '../api';

/** What can be done to a node: AWS reboots and replaces, the scheduler drains and resumes. */
export type NodeAction = Schema<'NodeAction'>;

/** All of them, in the order in which they are shown. */
export const NODE_ACTIONS: readonly NodeAction[] = [
  'reboot',
  'replace',
  'drain',
  'resume'
];

/** Whether something can be done to the nodes of a cluster; its problem is null where nothing is known to be in its way. */
export type INodeAbility = Schema<'NodeAbility'>;

/**
 * What is to be done to which nodes.
 */
export interface INodeOrder {
  readonly action: NodeAction;
  /** Instance ids, or the scheduler's names. */
  readonly nodes: readonly string[];
  /** With drain: why. */
  readonly reason?: string;
}

/** The consequences for one node. */
export type INodeToActOn = Schema<'NodeToActOn'>;

/** The consequences for nodes. Nothing has been done. */
export type INodePlan = Schema<'NodeActionPreview'>;

/** What came of an action on one node; its error is null when AWS or the scheduler took it. */
export type INodeResult = Schema<'NodeResult'>;

/** How to open a terminal on a node. */
export type INodeTerminal = Schema<'HyperpodTerminal'>;
