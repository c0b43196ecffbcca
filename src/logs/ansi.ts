/**
 * A stretch of text in one style.
 */
export interface ISpan {
  readonly text: string;
  /** Where it begins in the line as it came, escape sequences counted. */
  readonly begin: number;
  /** Class names. */
  readonly classes: readonly string[];
  /** Colours that no class has, as CSS. */
  readonly color: string | null;
  readonly background: string | null;
}

/** Colour sequences; other control sequences; titles and links; single controls that would show as boxes. */
const SEQUENCE =
  // eslint-disable-next-line no-control-regex
  /\x1b\[([\d;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[@-Z\\-_]?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]/g;

// eslint-disable-next-line no-control-regex
const ANY_CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/;

const NAMES = [
  'black',
  'red',
  'green',
  'yellow',
  'blue',
  'magenta',
  'cyan',
  'white'
];

interface IStyle {
  fg: string | null;
  bg: string | null;
  color: string | null;
  background: string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

/**
 * A line's text in its styles; escape sequences that are no styles are left out.
 *
 * The classes are those that JupyterLab has for its own outputs, with our prefix.
 */
export function ansiSpans(line: string): ISpan[] {
  const plain = { classes: [], color: null, background: null };
  if (!ANY_CONTROL.test(line)) {
    return [{ text: line, begin: 0, ...plain }];
  }
  const spans: ISpan[] = [];
  let style = fresh();
  let begin = 0;
  const add = (end: number): void => {
    if (end > begin) {
      spans.push({ text: line.slice(begin, end), begin, ...looks(style) });
    }
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(match.index);
    begin = match.index + match[0].length;
    if (match[1] !== undefined) {
      style = styled(style, match[1]);
    }
  }
  add(line.length);
  return spans;
}

function fresh(): IStyle {
  return {
    fg: null,
    bg: null,
    color: null,
    background: null,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    inverse: false
  };
}

function looks(style: IStyle): Omit<ISpan, 'text' | 'begin'> {
  const classes: string[] = [];
  const add = (name: string): void => {
    classes.push(`jp-HyperPod-ansi-${name}`);
  };
  if (style.fg) {
    add(`${style.fg}-fg`);
  }
  if (style.bg) {
    add(`${style.bg}-bg`);
  }
  for (const name of [
    'bold',
    'dim',
    'italic',
    'underline',
    'inverse'
  ] as const) {
    if (style[name]) {
      add(name);
    }
  }
  return { classes, color: style.color, background: style.background };
}

/** What a sequence's numbers make of a style. */
function styled(before: IStyle, parameters: string): IStyle {
  const style = { ...before };
  const codes = parameters.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at];
    if (code === 38 || code === 48) {
      at = setExtended(style, codes, at);
    } else if (code === 0) {
      Object.assign(style, fresh());
    } else {
      setSimple(style, code);
    }
  }
  return style;
}

const SWITCHES: Readonly<Record<number, Partial<IStyle>>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { fg: null, color: null },
  49: { bg: null, background: null }
};

function setSimple(style: IStyle, code: number): void {
  const tens = Math.floor(code / 10);
  if (code in SWITCHES) {
    Object.assign(style, SWITCHES[code]);
  } else if (tens === 3 || tens === 9 || tens === 4 || tens === 10) {
    const name = NAMES[code % 10];
    if (name) {
      setNamed(style, tens === 4 || tens === 10, name, tens > 4);
    }
  }
}

function setNamed(
  style: IStyle,
  back: boolean,
  name: string,
  intense: boolean
): void {
  const full = intense ? `${name}-intense` : name;
  Object.assign(
    style,
    back ? { bg: full, background: null } : { fg: full, color: null }
  );
}

/** One of 256 colours or any colour; gives the place of the last number that belongs to it. */
function setExtended(style: IStyle, codes: number[], at: number): number {
  const back = codes[at] === 48;
  if (codes[at + 1] === 5) {
    const number = codes[at + 2] ?? 0;
    if (number < 16) {
      setNamed(style, back, NAMES[number % 8], number > 7);
    } else {
      setColour(style, back, paletteColour(number));
    }
    return at + 2;
  }
  if (codes[at + 1] === 2) {
    const [red = 0, green = 0, blue = 0] = codes.slice(at + 2, at + 5);
    setColour(style, back, `rgb(${red}, ${green}, ${blue})`);
    return at + 4;
  }
  return codes.length;
}

function setColour(style: IStyle, back: boolean, colour: string): void {
  Object.assign(
    style,
    back ? { bg: null, background: colour } : { fg: null, color: colour }
  );
}

/** A colour of the cube of 6 x 6 x 6, or of the 24 greys behind it. */
function paletteColour(number: number): string {
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const at = number - 16;
  const level = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  return `rgb(${level(Math.floor(at / 36))}, ${level(Math.floor(at / 6) % 6)}, ${level(at % 6)})`;
}
