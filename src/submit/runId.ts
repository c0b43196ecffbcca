const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/**
 * Gives requests their run ids: as long as it is unknown what became of one, the same request is the same run.
 */
export class RunIds {
  /** The id of the run that a request makes. */
  of(request: string): string {
    const id = this._open.get(request) ?? newRunId();
    this._open.set(request, id);
    return id;
  }

  /** It is known what became of a request: the same one once more is another run. */
  settle(request: string): void {
    this._open.delete(request);
  }

  private readonly _open = new Map<string, string>();
}

/**
 * A run id such as `20261121-120455-k3x9qd`: the time in UTC, then 30 random bits.
 *
 * The page makes it, so that a submit whose answer was lost can be sent again and is still one run.
 */
export function newRunId(now: Date = new Date()): string {
  const time = now.toISOString().slice(0, 19).replace(/[-:]/g, '');
  const random = crypto.getRandomValues(new Uint8Array(6));
  const tail = [...random].map(byte => ALPHABET[byte % ALPHABET.length]);
  return `${time.replace('T', '-')}-${tail.join('')}`;
}
