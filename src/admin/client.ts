import { HyperPodClient, Schema } from '../api';
import { ITablePage } from '../clusters/types';
import { IAsked, IChoices, IRights, IStepsQuery, IThere, IWork } from './types';

/**
 * The client of the server extension's routes for admins.
 */
export class AdminClient {
  constructor(private readonly _client: HyperPodClient) {}

  /** Whether the page is offered. */
  rights(): Promise<IRights> {
    return this._client.get('admin/rights');
  }

  /** What can be chosen. */
  choices(): Promise<IChoices> {
    return this._client.get('admin/choices');
  }

  /** Which mode a domain is in by now. */
  there(domain: string, fileSystem: string): Promise<IThere> {
    return this._client.get('admin/mode', {
      query: {
        domain,
        file_system: fileSystem
      } satisfies Schema<'AdminModeQuery'>
    });
  }

  /** The newest plan, and what became of it. */
  read(): Promise<IWork> {
    return this._client.get('admin/work');
  }

  /** A part of its steps. */
  async steps(query: IStepsQuery): Promise<ITablePage> {
    const { cursor, filter, limit, sort, state } = query;
    const { steps, ...page } = await this._client.get<Schema<'AdminSteps'>>(
      'admin/steps',
      {
        query: {
          limit,
          cursor,
          sort,
          filter: filter || undefined,
          state
        } satisfies Schema<'StepsQuery'>
      }
    );
    return { ...page, rows: steps };
  }

  /** Begin to plan. */
  plan(asked: IAsked): Promise<IWork> {
    const body: Schema<'AdminPlanBody'> = asked;
    return this._client.post('admin/plan', body);
  }

  /** Do what the plan of an id says. */
  apply(plan: string): Promise<IWork> {
    const body: Schema<'AdminApplyBody'> = { plan };
    return this._client.post('admin/apply', body);
  }

  /** Begin no further step. */
  cancel(): Promise<IWork> {
    return this._client.post('admin/cancel', {});
  }
}

/** What the rest needs of it; tests give one of their own. */
export type IAdminClient = Pick<AdminClient, keyof AdminClient>;
