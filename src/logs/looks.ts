/** How logs look to a user, in this browser. */
const KEY = 'hyperpod_jlab:log-looks';

/** What the user has set last; undefined when nothing was, or when the browser keeps nothing. */
export function rememberedLook(name: string): boolean | undefined {
  const value = all()[name];
  return typeof value === 'boolean' ? value : undefined;
}

/** Keep what the user has set, for logs that are opened from now on. */
export function rememberLook(name: string, value: boolean): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...all(), [name]: value }));
  } catch {
    // A browser may forbid it: it holds for this log then.
  }
}

function all(): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return found !== null && typeof found === 'object' ? { ...found } : {};
  } catch {
    return {};
  }
}
