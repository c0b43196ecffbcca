/**
 * How long to wait before the next try: twice as long each time, up to a limit, a little by chance so that many pages
 * don't come back to a restarted server in the same moment.
 */
export class Backoff {
  constructor(options: Backoff.IOptions = {}) {
    this._first = options.first ?? 500;
    this._limit = options.limit ?? 30_000;
    this._random = options.random ?? Math.random;
    this._wait = this._first;
  }

  /** Milliseconds to wait now. */
  next(): number {
    const wait = this._wait;
    this._wait = Math.min(this._limit, wait * 2);
    return wait * (0.75 + this._random() / 2);
  }

  /** All is well again. */
  reset(): void {
    this._wait = this._first;
  }

  private readonly _first: number;
  private readonly _limit: number;
  private readonly _random: () => number;
  private _wait: number;
}

export namespace Backoff {
  export interface IOptions {
    /** Milliseconds before the first further try. */
    first?: number;
    /** The most milliseconds. */
    limit?: number;
    /** A number from 0 to 1. */
    random?: () => number;
  }
}
