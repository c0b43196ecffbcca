import { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog, WidgetTracker } from '@jupyterlab/apputils';
import {
  JSONObject,
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { ActionKind, actionCaption, ACTIONS } from '../actions/kinds';
import { hyperPodIcon } from '../icons';
import { openPage } from '../shellArea';
import { CommandIDs, IHyperPod } from '../tokens';
import { pageActions } from './actions';
import type { RunPage } from './page';

type Arguments = ReadonlyPartialJSONObject;

/** The schema of commands on one run. */
const RUN_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: { type: 'string', description: 'The id of the run' }
  },
  required: ['runId'],
  additionalProperties: false
};

const CHANGE_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: { type: 'string', description: 'The id of the run' },
    timeLimit: {
      type: 'string',
      description: 'The new time limit, counted from the start, such as 2h'
    },
    queue: { type: 'string', description: 'The queue that it is moved to' }
  },
  required: ['runId'],
  additionalProperties: false
};

const LIST_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 500, default: 50 },
    cluster: { type: 'string', description: 'Only runs on this cluster' },
    cursor: { type: 'string', description: 'The `next` of the list before' }
  },
  additionalProperties: false
};

/**
 * Add the commands on runs; each answers with JSON and rejects with an error that says why.
 */
export function addRunCommands(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<RunPage>
): void {
  const { runClient, trans } = hyperPod;
  app.commands.addCommand(CommandIDs.openRun, {
    label: trans.__('Open Run…'),
    caption: trans.__('Show a run and its log'),
    icon: hyperPodIcon,
    describedBy: { args: RUN_ARGUMENTS },
    execute: async args => {
      const runId = textOf(args, 'runId') ?? (await askForRun(hyperPod));
      return runId === null ? null : openRun(app, hyperPod, tracker, runId);
    }
  });
  addActionCommands(app, hyperPod);
  app.commands.addCommand(CommandIDs.listRuns, {
    label: trans.__('List Runs'),
    caption: trans.__('List the newest runs and their states as JSON'),
    describedBy: { args: LIST_ARGUMENTS },
    execute: async args => {
      const page = await runClient.list({
        limit: typeof args.limit === 'number' ? args.limit : 50,
        cluster: textOf(args, 'cluster'),
        cursor: textOf(args, 'cursor')
      });
      return { runs: page.runs, next: page.next };
    }
  });
}

/** The commands that do something to a run. */
function addActionCommands(
  app: JupyterFrontEnd,
  { runs, trans }: IHyperPod
): void {
  const labels: Readonly<Record<ActionKind, string>> = {
    cancel: trans.__('Cancel Run'),
    hold: trans.__('Hold Run'),
    release: trans.__('Release Run'),
    requeue: trans.__('Requeue Run'),
    change: trans.__('Change Run')
  };
  for (const action of ACTIONS) {
    const changes = action === 'change';
    app.commands.addCommand(CommandIDs.actOnRun[action], {
      label: labels[action],
      caption: actionCaption(action, trans),
      describedBy: { args: changes ? CHANGE_ARGUMENTS : RUN_ARGUMENTS },
      execute: args => {
        const change = changes
          ? {
              time_limit: textOf(args, 'timeLimit') ?? null,
              queue: textOf(args, 'queue') ?? null
            }
          : undefined;
        return runs.act(neededRunId(args), action, change);
      }
    });
  }
}

async function openRun(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  tracker: WidgetTracker<RunPage>,
  runId: string
): Promise<JSONObject> {
  await openPage(app, tracker, `hyperpod-run-${runId}`, async () => {
    const { RunPage } = await import('./page');
    hyperPod.runs.start();
    const page = new RunPage({
      runId,
      runs: hyperPod.runs,
      runClient: hyperPod.runClient,
      logClient: hyperPod.logs,
      actions: pageActions(app, hyperPod),
      trans: hyperPod.trans
    });
    page.title.label = runId;
    page.title.caption = runId;
    return page;
  });
  return { run_id: runId };
}

async function askForRun(hyperPod: IHyperPod): Promise<string | null> {
  const { trans } = hyperPod;
  const { ChooseRun } = await import('./chooseRun');
  await hyperPod.runs.refresh().catch(() => undefined);
  const body = new ChooseRun(hyperPod.runs.runs, trans);
  const answer = await showDialog({
    title: trans.__('Open a run'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Open') })
    ]
  });
  return answer.button.accept && answer.value ? answer.value : null;
}

function neededRunId(args: Arguments): string {
  const runId = textOf(args, 'runId');
  if (runId === undefined) {
    throw new Error('runId is missing');
  }
  return runId;
}

function textOf(args: Arguments, name: string): string | undefined {
  const value = args[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
