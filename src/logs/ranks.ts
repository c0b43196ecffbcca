/** More than that is a mistake in typing, and would only make a long request. */
const MOST = 4096;

/**
 * The ranks that a text such as `0-3, 7` names.
 *
 * @returns the ranks in rising order; undefined for an empty text (all); null when it can't be understood
 */
export function parseRanks(text: string): number[] | undefined | null {
  const parts = text
    .split(/[\s,;]+/)
    .map(part => part.trim())
    .filter(part => part !== '');
  if (parts.length === 0) {
    return undefined;
  }
  const ranks = new Set<number>();
  for (const part of parts) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    const begin = Number(match?.[1]);
    const end = Number(match?.[2] ?? match?.[1]);
    if (!match || end < begin || end - begin >= MOST) {
      return null;
    }
    for (let rank = begin; rank <= end; rank++) {
      ranks.add(rank);
    }
  }
  return [...ranks].sort((one, other) => one - other);
}

/** Ranks as a short text, such as `0-3, 7`. */
export function formatRanks(ranks: readonly number[] | undefined): string {
  const parts: string[] = [];
  let begin = -1;
  (ranks ?? []).forEach((rank, at, all) => {
    if (all[at - 1] !== rank - 1) {
      begin = rank;
    }
    if (all[at + 1] !== rank + 1) {
      parts.push(begin === rank ? `${rank}` : `${begin}-${rank}`);
    }
  });
  return parts.join(', ');
}
