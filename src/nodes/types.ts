import { JSONObject } from '@lumino/coreutils';

import {
  ApiError,
  asText,
  listOf,
  partOrNull,
  recordOf,
  textOf,
  textOrNull
} from '../api';
import type * as wire from '../api/types';
import { decodeError } from '../clusters/types';

/** What can be done to a node: AWS reboots and replaces, the scheduler drains and resumes. */
export type NodeAction = wire.NodeAction;

/** All of them, in the order in which they are shown. */
export const NODE_ACTIONS: readonly NodeAction[] = [
  'reboot',
  'replace',
  'drain',
  'resume'
];

/**
 * Whether something can be done to the nodes of a cluster.
 */
export interface INodeAbility {
  readonly action: NodeAction;
  /** Why it can't; null where nothing is known to be in its way. */
  readonly problem: ApiError | null;
}

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

/**
 * What would become of one node.
 */
export interface INodeToActOn {
  readonly name: string;
  /** Its instance id, where AWS knows it. */
  readonly instance: string | null;
  /** The scheduler's name for it. */
  readonly node: string | null;
  /** What becomes of it and of the jobs on it, a sentence each. */
  readonly effects: readonly string[];
  /** Why it would not be tried. */
  readonly refusal: ApiError | null;
}

/**
 * What would become of nodes. Nothing has been done.
 */
export interface INodePlan {
  readonly action: NodeAction;
  readonly nodes: readonly INodeToActOn[];
  /** What becomes of all of them, a sentence each. */
  readonly effects: readonly string[];
  /** What could not be found out, a sentence each. */
  readonly notes: readonly string[];
  /** The answer as it came, for commands. */
  readonly plain: JSONObject;
}

/**
 * What came of an action on one node.
 */
export interface INodeResult {
  readonly name: string;
  readonly instance: string | null;
  readonly node: string | null;
  /** Null when AWS or the scheduler took it. */
  readonly error: ApiError | null;
}

/**
 * How to open a terminal on a node.
 */
export interface INodeTerminal {
  readonly instance: string;
  /** The command as a line for a shell. */
  readonly line: string;
  /** Programs that it needs and that the server's machine does not have. */
  readonly missing: readonly wire.IMissingProgram[];
}

/** What can be done, from an answer. */
export function decodeAbilities(value: unknown): readonly INodeAbility[] {
  const from = recordOf<wire.INodeAbilities>(value, 'actions');
  return listOf(from, 'actions', item => {
    const one = recordOf<wire.INodeAbility>(item, 'action');
    return {
      action: actionOf(textOf(one, 'action')),
      problem: partOrNull(one, 'problem', decodeError)
    };
  });
}

/** What would be done, from an answer. */
export function decodePlan(value: unknown): INodePlan {
  const from = recordOf<wire.INodeActionPreview>(value, 'preview');
  return {
    action: actionOf(textOf(from, 'action')),
    nodes: listOf(from, 'nodes', decodeToActOn),
    effects: listOf(from, 'effects', asText),
    notes: listOf(from, 'notes', asText),
    plain: value as JSONObject
  };
}

function decodeToActOn(value: unknown): INodeToActOn {
  const from = recordOf<wire.INodeToActOn>(value, 'node');
  return {
    name: textOf(from, 'name'),
    instance: textOrNull(from, 'instance'),
    node: textOrNull(from, 'node'),
    effects: listOf(from, 'effects', asText),
    refusal: partOrNull(from, 'refusal', decodeError)
  };
}

/** What came of it, from an answer. */
export function decodeNodeResults(value: unknown): readonly INodeResult[] {
  const from = recordOf<wire.INodeResults>(value, 'results');
  return listOf(from, 'results', item => {
    const one = recordOf<wire.INodeResult>(item, 'result');
    return {
      name: textOf(one, 'name'),
      instance: textOrNull(one, 'instance'),
      node: textOrNull(one, 'node'),
      error: partOrNull(one, 'error', decodeError)
    };
  });
}

/** The way to a terminal, from an answer. */
export function decodeTerminal(value: unknown): INodeTerminal {
  const from = recordOf<wire.IHyperpodTerminal>(value, 'terminal');
  return {
    instance: textOf(from, 'instance'),
    line: textOf(from, 'line'),
    missing: listOf(from, 'missing', item => {
      const one = recordOf<wire.IMissingProgram>(item, 'program');
      return { name: textOf(one, 'name'), what: textOf(one, 'what') };
    })
  };
}

function actionOf(text: string): NodeAction {
  const found = NODE_ACTIONS.find(action => action === text);
  if (found === undefined) {
    throw new Error(`there is no action ${text}`);
  }
  return found;
}
