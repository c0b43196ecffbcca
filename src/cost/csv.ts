import type { IUsageReport } from './client';

/** The days of a report as CSV, with the columns of `hpj usage --csv`. */
export function csvOf(report: IUsageReport): string {
  const currency = report.currency.toLowerCase();
  const title = ['day', report.by, 'node_hours', 'gpu_hours'];
  const rows = report.days.map(one => [
    one.day,
    cell(one.key),
    one.node_hours.toFixed(6),
    one.gpu_hours.toFixed(6),
    one.amount?.toFixed(6) ?? ''
  ]);
  return [[...title, `amount_${currency}`], ...rows]
    .map(row => `${row.map(quoted).join(',')}\n`)
    .join('');
}

/** A file's name that tells what of a report is in it. */
export function csvName({ begin, by, end }: IUsageReport): string {
  return `usage-by-${by}-${begin.slice(0, 10)}-to-${end.slice(0, 10)}.csv`;
}

const HIDDEN = /(?! )[\p{C}\p{Z}]/gu;
/** How a formula of a spreadsheet begins, also in full width. */
const FORMULA = /^(?:[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])/;

/** A key, which another user may have chosen: without control characters; an apostrophe keeps it from being a formula. */
function cell(key: string): string {
  const shown = key.replace(HIDDEN, '');
  return FORMULA.test(key) || FORMULA.test(shown) ? `'${shown}` : shown;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
