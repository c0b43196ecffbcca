import { CodeCell } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { pageLanguage } from '../components/words';
import { ILogClient, LogWindow } from '../logs';
import { originLabel } from '../logs/rowElement';
import { IRun } from '../runs/types';

/** Lines that go into the output. */
export const FROZEN_LINES = 500;

/** The cell in whose output a widget is; null where it is somewhere else. */
export function cellOf(widget: Widget): CodeCell | null {
  let parent = widget.parent;
  while (parent && !(parent instanceof CodeCell)) {
    parent = parent.parent;
  }
  return parent;
}

/**
 * Put the last lines of a run's log into a cell's output, as ordinary text that is saved with the notebook.
 */
export async function freezeLog(options: {
  cell: CodeCell;
  run: IRun;
  client: ILogClient;
  trans: TranslationBundle;
}): Promise<void> {
  const { cell, client, run, trans } = options;
  const text = await lastLines(client, run.run_id);
  if (cell.isDisposed) {
    return;
  }
  const head = trans.__(
    'Log of run %1, last %2 lines at %3:',
    run.run_id,
    FROZEN_LINES,
    new Date().toLocaleString(pageLanguage())
  );
  cell.model.outputs.add({
    output_type: 'stream',
    name: 'stdout',
    text: `${head}\n${text}`
  });
}

/** The last lines as text, with their ranks in front where there is more than one. */
export async function lastLines(
  client: ILogClient,
  runId: string
): Promise<string> {
  const page = await client.page({
    runId,
    direction: 'backward',
    limit: FROZEN_LINES
  });
  const window = new LogWindow();
  window.reset(page);
  const rows = [];
  for (let number = window.first; number < window.end; number++) {
    const row = window.row(number);
    if (row) {
      rows.push(row);
    }
  }
  const isMixed = new Set(rows.map(row => row.stream)).size > 1;
  return rows
    .map(row => {
      const text = row.mark ? `-- ${row.mark.text} --` : row.text;
      return isMixed ? `${originLabel(row.origin)}| ${text}\n` : `${text}\n`;
    })
    .join('');
}
