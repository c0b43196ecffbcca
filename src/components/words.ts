import { TranslationBundle } from '@jupyterlab/translation';

const KIB = 1024;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const ROUND = { maximumFractionDigits: 0 };

/** A run's or a cluster's state in words. */
export function stateText(state: string, trans: TranslationBundle): string {
  const texts: Readonly<Record<string, string>> = {
    submitting: trans.__('submitting'),
    waiting: trans.__('waiting'),
    running: trans.__('running'),
    succeeded: trans.__('succeeded'),
    failed: trans.__('failed'),
    cancelled: trans.__('cancelled'),
    unknown: trans.__('unknown'),
    up: trans.__('up'),
    down: trans.__('down'),
    unreachable: trans.__('unreachable')
  };
  return texts[state] ?? state;
}

/** The language of the page, for times; undefined (the browser's) where it says none. */
export function pageLanguage(): string | undefined {
  const language = document.documentElement.lang.replace(/_/g, '-');
  try {
    return Intl.getCanonicalLocales(language)[0];
  } catch {
    return undefined;
  }
}

/** A moment as the user's language writes it. */
export function momentText(iso: string | null): string {
  if (iso === null) {
    return '';
  }
  return new Intl.DateTimeFormat(pageLanguage(), {
    dateStyle: 'medium',
    timeStyle: 'medium'
  }).format(new Date(iso));
}

/** A moment, as short as it can be said: the time of today, the day and the time of this year. */
export function shortMomentText(iso: string): string {
  const moment = new Date(iso);
  const now = new Date();
  const isToday = moment.toDateString() === now.toDateString();
  const isThisYear = moment.getFullYear() === now.getFullYear();
  return new Intl.DateTimeFormat(pageLanguage(), {
    ...(!isToday && { month: 'short', day: 'numeric' }),
    ...(!isThisYear && { year: 'numeric' }),
    hour: '2-digit',
    minute: '2-digit'
  }).format(moment);
}

/** How long something took, or takes so far. */
export function durationText(
  begin: string | null,
  end: string | null,
  trans: TranslationBundle
): string {
  if (begin === null) {
    return '';
  }
  const until = end === null ? Date.now() : Date.parse(end);
  const seconds = Math.max(0, Math.round((until - Date.parse(begin)) / 1000));
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  if (days > 0) {
    return trans.__('%1 d %2 h', days, hours % 24);
  }
  if (hours > 0) {
    return trans.__('%1 h %2 min', hours, minutes % 60);
  }
  return minutes > 0
    ? trans.__('%1 min %2 s', minutes, seconds % 60)
    : trans.__('%1 s', seconds);
}

/** How long ago something was, in the largest unit. */
export function agoText(iso: string, trans: TranslationBundle): string {
  const seconds = Math.round((Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 1) {
    return trans.__('now');
  }
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours >= 24) {
    return trans.__('%1 d ago', Math.floor(hours / 24));
  }
  if (hours > 0) {
    return trans.__('%1 h ago', hours);
  }
  return minutes > 0
    ? trans.__('%1 min ago', minutes)
    : trans.__('%1 s ago', seconds);
}

/** The unit in which so many bytes are best read, and its bytes. */
export function byteUnit(bytes: number): { name: string; size: number } {
  let step = 0;
  while (bytes >= KIB ** (step + 1) && step < UNITS.length - 1) {
    step += 1;
  }
  return { name: UNITS[step], size: KIB ** step };
}

/** Bytes as people read them: 1.5 GiB. */
export function bytesText(bytes: number): string {
  const { name, size } = byteUnit(bytes);
  return `${numberText(bytes / size)} ${name}`;
}

/** Three digits that count. */
export function numberText(value: number): string {
  return new Intl.NumberFormat(pageLanguage(), {
    maximumSignificantDigits: 3
  }).format(value);
}

/**
 * Money as the user's language writes it.
 *
 * @param isRough - whether to leave out cents beside larger amounts
 */
export function moneyText(
  amount: number,
  currency: string,
  isRough = false
): string {
  const isTiny = amount > 0 && amount < 0.005;
  const text = new Intl.NumberFormat(pageLanguage(), {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
    ...(isRough && (amount >= 10 || amount === 0) && ROUND)
  }).format(isTiny ? 0.01 : amount);
  return isTiny ? `< ${text}` : text;
}

/** Hours of nodes or GPUs: three digits that count, and all digits before the point. */
export function hoursText(hours: number): string {
  return hours > 0 && hours < 0.01
    ? `< ${numberText(0.01)}`
    : hours < 100
      ? numberText(hours)
      : Math.round(hours).toLocaleString(pageLanguage());
}

/** How many nodes and GPUs something has: 2 nodes, 16 GPUs. */
export function nodesText(
  nodes: number,
  gpus: number,
  trans: TranslationBundle
): string {
  return [
    nodes > 0 && trans._n('%1 node', '%1 nodes', nodes),
    gpus > 0 && trans._n('%1 GPU', '%1 GPUs', gpus)
  ]
    .filter(Boolean)
    .join(', ');
}
