import { answerOf } from '../../__tests__/answers';
import { INodeClient } from '../client';
import {
  INodeAbility,
  INodeOrder,
  INodePlan,
  INodeResult,
  INodeTerminal
} from '../types';

/** An error, as the server sends it. */
export function problem(
  code: string,
  message: string
): Record<string, unknown> {
  return { code, message, hint: null, detail: {} };
}

/** Abilities, as the server sends them; those that are named have a problem. */
export function abilities(
  problems: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  return {
    actions: ['reboot', 'replace', 'drain', 'resume'].map(action => ({
      action,
      problem: problems[action] ?? null
    }))
  };
}

/**
 * A server that refuses what the test says, and remembers what it was asked.
 */
export class FakeNodeClient implements INodeClient {
  readonly previews: INodeOrder[] = [];
  readonly orders: [string, INodeOrder][] = [];

  abilityAnswer: unknown = abilities();
  abilityFailure: Error | null = null;
  /** By node: why it is refused before, or when it is done. */
  refusals: Record<string, unknown> = {};
  errors: Record<string, unknown> = {};
  /** Thrown in place of an answer to an action. */
  failure: Error | null = null;
  missing: string[] = [];
  /** Waited for before an action is answered. */
  gate: Promise<void> = Promise.resolve();

  abilities(): Promise<readonly INodeAbility[]> {
    return this.abilityFailure
      ? Promise.reject(this.abilityFailure)
      : Promise.resolve(answerOf('NodeAbilities', this.abilityAnswer).actions);
  }

  preview(_: string, order: INodeOrder): Promise<INodePlan> {
    this.previews.push(order);
    return Promise.resolve(
      answerOf('NodeActionPreview', {
        action: order.action,
        cluster: 'ml-cluster',
        reason: null,
        nodes: order.nodes.map(name => ({
          name,
          instance: name,
          node: `ip-${name}`,
          jobs: [],
          effects: this.refusals[name] ? [] : ['job 7 (train, of ada) ends'],
          refusal: this.refusals[name] ?? null
        })),
        effects: ['all work on the nodes ends'],
        notes: ['which jobs run is not known']
      })
    );
  }

  async act(
    cluster: string,
    order: INodeOrder
  ): Promise<readonly INodeResult[]> {
    this.orders.push([cluster, order]);
    await this.gate;
    if (this.failure) {
      throw this.failure;
    }
    return answerOf('NodeResults', {
      results: order.nodes.map(name => ({
        name,
        instance: name,
        node: null,
        ok: !this.errors[name],
        error: this.errors[name] ?? null
      })),
      notes: []
    }).results;
  }

  terminal(_: string, node: string): Promise<INodeTerminal> {
    return Promise.resolve(
      answerOf('HyperpodTerminal', {
        instance: node,
        target: `sagemaker-cluster:abc_workers-${node}`,
        command: ['aws', 'ssm', 'start-session'],
        line: 'aws ssm start-session',
        missing: this.missing.map(name => ({ name, what: `get ${name}` }))
      })
    );
  }
}
