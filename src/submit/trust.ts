import { IFinding } from './types';

/** The code is another user's, and this user has not confirmed that it may run. */
export const FOREIGN_CODE = 'foreign_code';

/**
 * Whose code would run: the server says when it is another user's, and that stays so whatever is typed.
 */
export class Trust {
  constructor(owner: string | null) {
    this._owner = owner;
  }

  /** The other user; null as long as the server has not said that the code is another's. */
  get owner(): string | null {
    return this._isForeign ? this._owner : null;
  }

  /** Learn from the codes of findings or of a refusal. */
  hear(codes: readonly string[]): void {
    this._isForeign ||= codes.includes(FOREIGN_CODE);
  }

  /** Findings less those that the question to the user says already. */
  withoutAsked(findings: readonly IFinding[]): readonly IFinding[] {
    return this.owner === null
      ? findings
      : findings.filter(({ code }) => code !== FOREIGN_CODE);
  }

  private readonly _owner: string | null;
  private _isForeign = false;
}
