import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import {
  JSONObject,
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { CommandIDs, IHyperPod } from '../tokens';
import { checksum } from './checksum';
import { ICellsClient, ISentCell } from './client';
import { SentCellView } from './sentCellView';

const ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: { type: 'string', description: 'The run' },
    cell: {
      type: 'integer',
      minimum: 1,
      description: 'The code cell’s number when the run was sent'
    },
    line: { type: 'integer', minimum: 1, default: 1 }
  },
  required: ['runId', 'cell'],
  additionalProperties: false
};

interface IParts {
  readonly app: JupyterFrontEnd;
  readonly hyperPod: IHyperPod;
  readonly client: ICellsClient;
  readonly notebooks: INotebookTracker | null;
}

/**
 * Add the command that shows a line of a cell that ran: in the notebook, or as it was sent where the notebook has changed.
 */
export function addCellLineCommand(parts: IParts): void {
  const { app, hyperPod } = parts;
  const { trans } = hyperPod;
  app.commands.addCommand(CommandIDs.openCellLine, {
    label: trans.__('Open Cell of a Run at a Line'),
    caption: trans.__('Show the line that a traceback points to'),
    describedBy: { args: ARGUMENTS },
    execute: args => openCellLine(parts, args)
  });
}

async function openCellLine(
  parts: IParts,
  args: ReadonlyPartialJSONObject
): Promise<JSONObject> {
  const { trans } = parts.hyperPod;
  const { cell: number, line, runId } = args;
  if (typeof runId !== 'string' || typeof number !== 'number') {
    throw new Error(trans.__('Specify a run and a cell.'));
  }
  const at = typeof line === 'number' ? line : 1;
  const { cells, path } = await parts.client.ofRun(runId);
  const sent = cells.find(one => one.number === number);
  if (!sent) {
    throw new Error(trans.__('Cell %2 not found in run %1.', runId, number));
  }
  const panel = path === null ? null : await openNotebook(parts, path);
  if (panel && (await goTo(panel, sent, at))) {
    return { opened: 'notebook', path };
  }
  if (sent.text === null) {
    throw new Error(
      trans.__('Cell %1 of run %2 is no longer available.', number, runId)
    );
  }
  await showSent(parts, number, sent.text, at);
  return { opened: 'copy', path };
}

/** The notebook, brought to the front; null when there is none any more. */
async function openNotebook(
  { app, notebooks }: IParts,
  path: string
): Promise<NotebookPanel | null> {
  const { contents } = app.serviceManager;
  const there = notebooks?.find(
    panel => contents.localPath(panel.context.path) === path
  );
  if (there) {
    app.shell.activateById(there.id);
    return there;
  }
  try {
    await contents.get(path, { content: false });
  } catch {
    return null;
  }
  await app.commands.execute('docmanager:open', { path });
  return (
    notebooks?.find(panel => contents.localPath(panel.context.path) === path) ??
    null
  );
}

/** Put the cursor on the line; false when the cell isn't as it was sent. */
async function goTo(
  panel: NotebookPanel,
  sent: ISentCell,
  line: number
): Promise<boolean> {
  await panel.context.ready;
  const { content } = panel;
  const code = content.widgets.filter(one => one.model.type === 'code');
  const cell =
    code.find(one => one.model.id === sent.id) ?? code[sent.number - 1];
  if (!cell || !isAsSent(cell.model.sharedModel.getSource(), sent)) {
    return false;
  }
  const index = content.widgets.indexOf(cell);
  content.deselectAll();
  content.activeCellIndex = index;
  await content.scrollToItem(index, 'center');
  await cell.ready;
  content.mode = 'edit';
  const position = { line: line - 1, column: 0 };
  cell.editor?.setCursorPosition(position);
  cell.editor?.revealPosition(position);
  cell.editor?.focus();
  return true;
}

function isAsSent(source: string, sent: ISentCell): boolean {
  return sent.text === null
    ? checksum(source) === sent.checksum
    : source === sent.text;
}

async function showSent(
  { hyperPod }: IParts,
  number: number,
  text: string,
  line: number
): Promise<void> {
  const { trans } = hyperPod;
  await showDialog({
    title: trans.__('Cell %1 as submitted', number),
    body: new SentCellView(text, line, trans),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}
