import { JupyterFrontEnd } from '@jupyterlab/application';
import type { NotebookWidgetFactory } from '@jupyterlab/notebook';
import {
  JSONObject,
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import {
  ActionKind,
  actionCaption,
  actionLabel,
  ACTIONS,
  fittingActions
} from '../actions/kinds';
import { hyperPodIcon } from '../icons';
import { agoText, stateText } from '../components/words';
import { CommandIDs, IHyperPod } from '../tokens';
import { actAfterQuestion, pageActions, runAgain } from './actions';
import type { RunPage } from './page';
import type { RunPages } from './pages';
import { IRun } from './types';

type Arguments = ReadonlyPartialJSONObject;

/** The run to open. */
const OPEN_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: {
      type: 'string',
      description: 'The id of the run; it is asked for when it is missing'
    },
    preview: {
      type: 'boolean',
      description:
        'A new page is a preview: it takes the place of the last one, until it is used',
      default: false
    }
  },
  additionalProperties: false
};

/** The schema of commands on one run. */
const RUN_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    runId: {
      type: 'string',
      description: 'The id of the run; it is asked for when it is missing'
    }
  },
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
  pages: RunPages,
  notebooks: NotebookWidgetFactory.IFactory | null
): void {
  const { runClient, trans } = hyperPod;
  app.commands.addCommand(CommandIDs.openRun, {
    label: trans.__('Open Run…'),
    caption: trans.__('Show a run and its log'),
    icon: hyperPodIcon,
    describedBy: { args: OPEN_ARGUMENTS },
    execute: async args => {
      const runId =
        textOf(args, 'runId') ??
        (await askForRun(hyperPod, trans.__('Open a run'), trans.__('Open')));
      const isPreview = args.preview === true;
      if (runId !== null) {
        await pages.open(runId, isPreview, () =>
          makePage(app, hyperPod, runId, notebooks)
        );
      }
      return runId === null ? null : { run_id: runId };
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
function addActionCommands(app: JupyterFrontEnd, hyperPod: IHyperPod): void {
  const { runs, trans } = hyperPod;
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
      execute: async args => {
        if (textOf(args, 'runId') === undefined) {
          return actOnPicked(hyperPod, action, labels[action]);
        }
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
  app.commands.addCommand(CommandIDs.repeatRun, {
    label: trans.__('Run Again…'),
    caption: trans.__('Submit a run again, with or without changes'),
    icon: hyperPodIcon,
    describedBy: { args: RUN_ARGUMENTS },
    // The dialog is another plugin's, which may be switched off.
    isEnabled: () => app.commands.hasCommand(CommandIDs.submit),
    execute: async args => {
      const runId =
        textOf(args, 'runId') ??
        (await askForRun(
          hyperPod,
          trans.__('Run again'),
          trans.__('Run again')
        ));
      if (runId !== null) {
        await runAgain(app, hyperPod, await runs.get(runId));
      }
      return { run_id: runId };
    }
  });
}

/** Do something to a run that the user picks, after the usual question. */
async function actOnPicked(
  hyperPod: IHyperPod,
  action: ActionKind,
  label: string
): Promise<JSONObject> {
  const { runs, trans } = hyperPod;
  const fits = ({ own, reason_code: code, state }: IRun) =>
    own && fittingActions([action], state, code === 'held').length > 0;
  const runId = await askForRun(
    hyperPod,
    label,
    actionLabel(action, trans),
    fits
  );
  const run = runId === null ? undefined : runs.find(runId);
  if (run) {
    await actAfterQuestion(hyperPod, run, action);
  }
  return { run_id: runId };
}

async function makePage(
  app: JupyterFrontEnd,
  hyperPod: IHyperPod,
  runId: string,
  notebooks: NotebookWidgetFactory.IFactory | null
): Promise<RunPage> {
  const { RunPage } = await import('./page');
  hyperPod.runs.start();
  return new RunPage({
    runId,
    runs: hyperPod.runs,
    runClient: hyperPod.runClient,
    logClient: hyperPod.logs,
    training: hyperPod.training,
    numbers: hyperPod.numbers,
    preferences: hyperPod.preferences,
    actions: pageActions(app, hyperPod),
    notebooks,
    trans: hyperPod.trans
  });
}

/** Let the user pick a run; null: none was picked. */
async function askForRun(
  { runs, trans }: IHyperPod,
  title: string,
  verb: string,
  fits: (run: IRun) => boolean = () => true
): Promise<string | null> {
  const [{ quickPick }, { runNames }] = await Promise.all([
    import('../components/quickPick'),
    import('./names'),
    runs.refresh()
  ]);
  const names = runNames(runs.runs);
  const picks = runs.runs.filter(fits).map(run => ({
    id: run.run_id,
    label: names.get(run.run_id) ?? run.name,
    detail: [
      stateText(run.state, trans),
      run.cluster,
      agoText(run.submitted_at ?? run.created_at, trans)
    ].join(' · ')
  }));
  const empty = trans.__('There are no such runs.');
  return quickPick({ title, verb, picks, empty }, trans);
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
