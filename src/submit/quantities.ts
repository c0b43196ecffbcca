/** What a number in the spec counts, which people write as a text such as 2h or 16G. */
export type Unit = 'duration' | 'size';

interface IUnit {
  readonly name: string;
  readonly value: number;
}

const DURATIONS: readonly IUnit[] = [
  { name: 'd', value: 86_400 },
  { name: 'h', value: 3600 },
  { name: 'm', value: 60 }
];

const SIZES: readonly IUnit[] = ['P', 'T', 'G', 'M', 'K'].map((name, at) => ({
  name,
  value: 1024 ** (5 - at)
}));

/** What a schema's examples say of its unit. */
export function unitOf(examples: unknown): Unit | null {
  const first: unknown = Array.isArray(examples) ? examples[0] : undefined;
  if (typeof first !== 'string') {
    return null;
  }
  if (/^\d+[smhd]$/.test(first)) {
    return 'duration';
  }
  return /^\d+[KMGTP]$/.test(first) ? 'size' : null;
}

/** A number as people write it: exact, with the largest unit that fits. */
export function written(unit: Unit, value: number): string {
  const units = unit === 'duration' ? DURATIONS : SIZES;
  const fits = units.find(one => value >= one.value && value % one.value === 0);
  return fits ? `${value / fits.value}${fits.name}` : String(value);
}

/** Any way to write the same value becomes one; what isn't known stays as it is. */
export function oneWay(unit: Unit, text: string): string {
  const value = unit === 'duration' ? secondsIn(text) : bytesIn(text);
  return value === null ? text : written(unit, value);
}

/** The seconds of a text such as 90, 2h or 1h 30m; null for any other. */
export function secondsIn(text: string): number | null {
  const trimmed = text.replace(/\s/g, '').toLowerCase();
  if (/^\d{1,12}$/.test(trimmed)) {
    return Number(trimmed);
  }
  if (!/^(\d{1,9}[smhdw])+$/.test(trimmed)) {
    return null;
  }
  const units: Readonly<Record<string, number>> = {
    s: 1,
    m: 60,
    h: 3600,
    d: 86_400,
    w: 604_800
  };
  const parts = trimmed.match(/\d+[smhdw]/g) ?? [];
  return parts.reduce(
    (sum, part) => sum + Number(part.slice(0, -1)) * units[part.slice(-1)],
    0
  );
}

function bytesIn(text: string): number | null {
  const found = /^(\d{1,15}(?:\.\d{1,9})?)\s*([KMGTP]?)i?B?$/i.exec(
    text.trim()
  );
  if (!found) {
    return null;
  }
  const unit = SIZES.find(one => one.name === found[2].toUpperCase());
  return Math.floor(Number(found[1]) * (unit?.value ?? 1));
}
