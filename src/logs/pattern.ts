import type { ILogRequest } from './types';

/** How bad a line is, by its own words. */
export type LogLevel = 'error' | 'warning';

/**
 * Regular expressions for lines of each level: of Python's logging and tracebacks, glog (torchrun, NCCL) and programs in C.
 *
 * The server filters by the same ones, so they keep to what JavaScript and Python have in common. A colour code ends
 * with `m` in front of a word.
 */
export const LEVELS: Readonly<Record<LogLevel, string>> = {
  error:
    '(?:\\b|m)(?:ERROR|FATAL|CRITICAL)\\b|' +
    '\\b[A-Za-z_.]*(?:Error|Exception|Interrupt)(?::|$)|' +
    '(?:^|m)Traceback .most recent|' +
    '\\b(?:error|fatal|panic)(?::|\\])|' +
    '\\b[Ss]egmentation fault|' +
    '^[EF]\\d{4} \\d\\d:|' +
    '=error\\b',
  warning:
    '(?:\\b|m)WARN(?:ING)?\\b|' +
    '\\b[A-Za-z_.]*Warning(?::|$)|' +
    '\\bwarning(?::|\\])|' +
    '^W\\d{4} \\d\\d:|' +
    '=warn(?:ing)?\\b'
};

const TESTS: readonly (readonly [LogLevel, RegExp])[] = [
  ['error', new RegExp(LEVELS.error)],
  ['warning', new RegExp(LEVELS.warning)]
];

/** Characters of a line in which a level is looked for. */
const MOST_CHARACTERS = 2000;

/** Matches that are shown of one line. */
const MOST_MATCHES = 100;

/** The level of a line; null for one that is neither. */
export function levelOf(text: string): LogLevel | null {
  const head = text.slice(0, MOST_CHARACTERS);
  return TESTS.find(([, test]) => test.test(head))?.[0] ?? null;
}

/** A text as a regular expression that matches just it. */
export function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Whether the case of letters does not matter: as long as no capital letter is given. */
export function ignoresCase(pattern: string): boolean {
  return pattern === pattern.toLowerCase();
}

/** The request for lines of some levels (none: of all) that match a pattern (empty: any). */
export function filterOf(
  pattern: string,
  levels: ReadonlySet<LogLevel>
): Pick<ILogRequest, 'grep' | 'ignoreCase'> {
  const level = [...levels].map(name => LEVELS[name]).join('|');
  if (level === '') {
    return pattern === ''
      ? { grep: undefined, ignoreCase: undefined }
      : { grep: pattern, ignoreCase: ignoresCase(pattern) || undefined };
  }
  const flag = ignoresCase(pattern) ? 'i' : '';
  const grep =
    pattern === '' ? level : `^(?=.*(?:${level}))(?=.*(?${flag}:${pattern}))`;
  return { grep, ignoreCase: undefined };
}

/**
 * The part of a row's text that is found by a search.
 */
export interface IMatch {
  readonly begin: number;
  readonly end: number;
}

/** Finds a pattern in lines, as the server does; null where this browser does not know such a pattern. */
export function finderOf(
  pattern: string
): ((text: string) => readonly IMatch[]) | null {
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, ignoresCase(pattern) ? 'gi' : 'g');
  } catch {
    return null;
  }
  return text => {
    const found: IMatch[] = [];
    for (const match of text.matchAll(expression)) {
      if (match[0] !== '') {
        found.push({ begin: match.index, end: match.index + match[0].length });
      }
      if (found.length === MOST_MATCHES) {
        break;
      }
    }
    return found;
  };
}
