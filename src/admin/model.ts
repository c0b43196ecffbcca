import { Event } from '@jupyterlab/services';
import { ISignal } from '@lumino/signaling';

import { ApiError } from '../api';
import { ServerWork } from '../components/serverWork';
import { IAdminClient } from './client';
import { AdminRights } from './rights';
import { IAsked, IChoices, isOpen, IWork } from './types';

/** The schema of the server's events on plans. */
export const ADMIN_EVENT = 'https://hyperpod-jlab.dev/events/admin/v1';

/**
 * The server's newest plan for a Studio domain, and what can be chosen for the next one.
 */
export class AdminModel extends ServerWork<IWork> {
  constructor(
    client: IAdminClient,
    rights: AdminRights,
    events: ISignal<unknown, Event.Emission>,
    mend?: number
  ) {
    super({ events, schema: ADMIN_EVENT, mend });
    this.client = client;
    this.rights = rights;
    rights.changed.connect(this.tell, this);
  }

  readonly client: IAdminClient;
  readonly rights: AdminRights;

  /** What can be chosen; null before it was read. */
  get choices(): IChoices | null {
    return this._choices;
  }

  /** Why it is not known what can be chosen, if so. */
  get choicesError(): ApiError | null {
    return this._choicesError;
  }

  override get isBusy(): boolean {
    return isOpen(this.value) && this.value?.state !== 'planned';
  }

  override dispose(): void {
    this.rights.changed.disconnect(this.tell, this);
    super.dispose();
  }

  /** Ask again for what is not there. */
  override refresh(): void {
    void this._begin();
  }

  /** Begin to plan. */
  plan(asked: IAsked): Promise<void> {
    return this.ask(() => this.client.plan(asked));
  }

  /** Do what the plan of an id says. */
  async apply(plan: string): Promise<void> {
    await this.ask(() => this.client.apply(plan));
    // It is another plan by now, perhaps: that one is to be seen.
    const { error } = this;
    if (error?.status === 409) {
      await this.look();
      this.keep(error);
    }
  }

  /** Begin no further step. */
  cancel(): Promise<void> {
    return this.ask(() => this.client.cancel());
  }

  protected override read(): Promise<IWork> {
    return this.client.read();
  }

  private async _begin(): Promise<void> {
    await this.rights.ask();
    if (this.rights.offered && !this.isDisposed) {
      await Promise.all([this.look(), this._choose()]);
    }
  }

  private async _choose(): Promise<void> {
    if (this._choices !== null) {
      return;
    }
    try {
      this._choices = await this.client.choices();
      this._choicesError = null;
    } catch (reason) {
      this._choicesError = ApiError.of(reason);
    }
    this.tell();
  }

  private _choices: IChoices | null = null;
  private _choicesError: ApiError | null = null;
}
