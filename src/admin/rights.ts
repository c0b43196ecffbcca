import { ISignal, Signal } from '@lumino/signaling';

import { ApiError, IErrorBody } from '../api';
import type { IAdminClient } from './client';

/**
 * Whether the Admin page is offered: asked once per browser page, when the panel is first visible, and never guessed.
 */
export class AdminRights {
  constructor(client: Pick<IAdminClient, 'rights'>) {
    this._client = client;
  }

  /** Tells that it was answered. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the server says so; not before it was asked. */
  get offered(): boolean {
    return this._offered;
  }

  /** Why it is not offered, once that is known. */
  get reason(): IErrorBody | null {
    return this._reason;
  }

  /** Ask, unless it was answered already. */
  ask(): Promise<void> {
    this._asked ??= this._ask();
    return this._asked;
  }

  private async _ask(): Promise<void> {
    try {
      const { offered, reason } = await this._client.rights();
      this._offered = offered;
      this._reason = reason;
    } catch (error) {
      // Nobody said no: who looks again asks again.
      this._reason = ApiError.of(error);
      this._asked = null;
    }
    this._changed.emit();
  }

  private readonly _client: Pick<IAdminClient, 'rights'>;
  private readonly _changed = new Signal<this, void>(this);
  private _asked: Promise<void> | null = null;
  private _offered = false;
  private _reason: IErrorBody | null = null;
}
