/**
 * A line of a comparison.
 */
export interface IDiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** More pairs of lines than this are not compared one by one. */
const MOST_PAIRS = 1_000_000;

/** What must be done to the lines before to get those after. */
export function diffLines(before: string, after: string): readonly IDiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  let head = 0;
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) {
    head++;
  }
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (
    tail < most &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  ) {
    tail++;
  }
  return [
    ...lines('same', old.slice(0, head)),
    ...between(
      old.slice(head, old.length - tail),
      now.slice(head, now.length - tail)
    ),
    ...lines('same', old.slice(old.length - tail))
  ];
}

/** Only the lines that changed, with a few around them. */
export function nearChanges(
  all: readonly IDiffLine[],
  around = 2
): readonly IDiffLine[] {
  const changed = all.map(line => line.kind !== 'same');
  return all.filter((_, at) =>
    changed.slice(Math.max(0, at - around), at + around + 1).includes(true)
  );
}

function between(
  old: readonly string[],
  now: readonly string[]
): readonly IDiffLine[] {
  if (old.length * now.length > MOST_PAIRS) {
    return [...lines('removed', old), ...lines('added', now)];
  }
  const common = longestCommon(old, now);
  const found: IDiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      found.push({ kind: 'same', text: old[i++] });
      j++;
    } else if (common[i + 1][j] >= common[i][j + 1]) {
      found.push({ kind: 'removed', text: old[i++] });
    } else {
      found.push({ kind: 'added', text: now[j++] });
    }
  }
  return [
    ...found,
    ...lines('removed', old.slice(i)),
    ...lines('added', now.slice(j))
  ];
}

/** For each pair of places how many lines the rests have in common, in order. */
function longestCommon(
  old: readonly string[],
  now: readonly string[]
): readonly Uint32Array[] {
  const table = Array.from(
    { length: old.length + 1 },
    () => new Uint32Array(now.length + 1)
  );
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      table[i][j] =
        old[i] === now[j]
          ? table[i + 1][j + 1] + 1
          : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return table;
}

function lines(
  kind: IDiffLine['kind'],
  texts: readonly string[]
): readonly IDiffLine[] {
  return texts.map(text => ({ kind, text }));
}
