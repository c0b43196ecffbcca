const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

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
