import { HyperPodClient, Query } from '../api';
import type * as wire from '../api/types';
import { ITablePage } from '../clusters/types';
import { encodeFolders } from './folders';
import {
  decodeChoices,
  decodeRights,
  decodeSteps,
  decodeThere,
  decodeWork,
  IAsked,
  IChoices,
  IRights,
  IStepsQuery,
  IThere,
  IWork
} from './types';

/**
 * Everything that the Admin page asks of the server; tests give one of their own.
 */
export interface IAdminClient {
  /** Whether the page is offered. */
  rights(): Promise<IRights>;
  /** What can be chosen. */
  choices(): Promise<IChoices>;
  /** Which mode a domain is in by now. */
  there(domain: string, fileSystem: string): Promise<IThere>;
  /** The newest plan, and what became of it. */
  read(): Promise<IWork>;
  /** A part of its steps. */
  steps(query: IStepsQuery): Promise<ITablePage>;
  /** Begin to plan. */
  plan(asked: IAsked): Promise<IWork>;
  /** Do what the plan of an id says. */
  apply(plan: string): Promise<IWork>;
  /** Begin no further step. */
  cancel(): Promise<IWork>;
}

/**
 * The client of the server extension's routes for admins.
 */
export class AdminClient implements IAdminClient {
  constructor(client: HyperPodClient) {
    this._client = client;
  }

  rights(): Promise<IRights> {
    return this._client.get('admin/rights', decodeRights);
  }

  choices(): Promise<IChoices> {
    return this._client.get('admin/choices', decodeChoices);
  }

  there(domain: string, fileSystem: string): Promise<IThere> {
    return this._client.get('admin/mode', decodeThere, {
      query: {
        domain,
        file_system: fileSystem
      } satisfies Query<wire.IAdminModeQuery>
    });
  }

  read(): Promise<IWork> {
    return this._client.get('admin/work', decodeWork);
  }

  steps(query: IStepsQuery): Promise<ITablePage> {
    return this._client.get('admin/steps', decodeSteps, {
      query: {
        limit: String(query.limit),
        cursor: query.cursor,
        sort: query.sort,
        filter: query.filter || undefined,
        state: query.state
      } satisfies Query<wire.IStepsQuery>
    });
  }

  plan(asked: IAsked): Promise<IWork> {
    const body: wire.IAdminPlanBody = {
      mode: asked.mode,
      domain: asked.domain,
      cluster: asked.cluster,
      file_system: asked.fileSystem,
      shared_path: asked.sharedPath,
      profiles: asked.profiles,
      take_over: asked.takeOver,
      folders: encodeFolders(asked.folders)
    };
    return this._client.post('admin/plan', body, decodeWork);
  }

  apply(plan: string): Promise<IWork> {
    const body: wire.IAdminApplyBody = { plan };
    return this._client.post('admin/apply', body, decodeWork);
  }

  cancel(): Promise<IWork> {
    return this._client.post('admin/cancel', {}, decodeWork);
  }

  private readonly _client: HyperPodClient;
}
