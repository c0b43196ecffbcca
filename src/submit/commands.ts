import { addIcon } from '@jupyterlab/ui-components';
import {
  ReadonlyJSONObject,
  ReadonlyPartialJSONObject
} from '@lumino/coreutils';

import { ApiError, isRecord } from '../api';
import { hyperPodIcon } from '../icons';
import { failed, whyText } from '../runs/actions';
import type { IRun } from '../runs/types';
import { CommandIDs } from '../tokens';
import type { ISubmitOptions } from './options';
import { COST_NOT_CONFIRMED } from './overLimit';
import { commandSource, ISubmitSource } from './source';
import {
  cellsSource,
  currentFolder,
  currentNotebook,
  ITools,
  pathSource,
  selectedFile
} from './tools';
import { IPreview, JsonObject } from './types';

type Arguments = ReadonlyPartialJSONObject;

const NO_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {},
  additionalProperties: false
};

const FILE_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      description: 'The file; default: the one selected in the file browser'
    }
  },
  additionalProperties: false
};

const NEW_RUN_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    cluster: {
      type: 'string',
      description: 'The cluster to begin with; default: the configured one'
    }
  },
  additionalProperties: false
};

const SUBMIT_ARGUMENTS: ReadonlyJSONObject = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      description:
        'The notebook, .py, .sbatch or .yaml file; default: the notebook in use. An open notebook runs as it is on the screen.'
    },
    cells: {
      type: 'array',
      items: { type: 'string' },
      description: 'Ids of the cells to run; default: the whole notebook'
    },
    cloneOf: {
      type: 'string',
      description: 'A run whose code is sent once more, instead of a file'
    },
    cluster: {
      type: 'string',
      description: 'The cluster; default: the configured one'
    },
    spec: {
      type: 'object',
      description:
        'Settings as the spec has them, such as {"resources": {"nodes": 2}}'
    },
    run: {
      type: 'boolean',
      description: 'Send it at once, without a dialog, and answer with the run'
    },
    preview: {
      type: 'boolean',
      description: 'Send nothing, answer with what exactly would run'
    }
  },
  additionalProperties: false
};

/**
 * Add the commands that send runs. `submit` is for programs too: with `run` it asks nothing, and rejects with the reason.
 */
export function addSubmitCommands(tools: ITools): void {
  const { app, hyperPod } = tools;
  const { trans } = hyperPod;
  app.commands.addCommand(CommandIDs.submit, {
    label: trans.__('Submit Run…'),
    caption: trans.__('Run a notebook or a file on a cluster'),
    icon: hyperPodIcon,
    describedBy: { args: SUBMIT_ARGUMENTS },
    execute: args => submit(tools, args)
  });
  app.commands.addCommand(CommandIDs.runFile, {
    label: trans.__('Run on Cluster…'),
    caption: trans.__('Run the selected file on a cluster'),
    icon: hyperPodIcon,
    describedBy: { args: FILE_ARGUMENTS },
    isEnabled: args => (textOf(args, 'path') ?? selectedFile(tools)) !== null,
    execute: async args => {
      const path = textOf(args, 'path') ?? selectedFile(tools);
      return path === null ? null : ask(tools, await pathSource(tools, path));
    }
  });
  app.commands.addCommand(CommandIDs.newRun, {
    label: trans.__('New Run…'),
    caption: trans.__('Run a command or a file on a cluster'),
    icon: addIcon,
    describedBy: { args: NEW_RUN_ARGUMENTS },
    execute: args => newRun(tools, textOf(args, 'cluster'))
  });
  addNotebookCommands(tools);
}

/** Ask for a command or a file as well. */
async function newRun(
  tools: ITools,
  cluster: string | null
): Promise<IRun | null> {
  const { askAndSubmit } = await import('./submitting');
  const source = commandSource(
    '',
    currentFolder(tools),
    tools.hyperPod.trans.__('command')
  );
  const start = cluster === null ? undefined : { cluster, spec: {} };
  return askAndSubmit(tools, source, {
    start,
    findSource: path => pathSource(tools, path)
  });
}

function addNotebookCommands(tools: ITools): void {
  const { app, hyperPod } = tools;
  const { trans } = hyperPod;
  const isEnabled = () => currentNotebook(tools) !== null;
  app.commands.addCommand(CommandIDs.runCells, {
    label: trans.__('Run Selected Cells on Cluster…'),
    caption: trans.__('Run the selected cells on a cluster'),
    icon: hyperPodIcon,
    describedBy: { args: NO_ARGUMENTS },
    isEnabled,
    execute: async () => {
      const panel = currentNotebook(tools);
      return panel && ask(tools, cellsSource(tools, panel));
    }
  });
  app.commands.addCommand(CommandIDs.runNotebook, {
    label: trans.__('Run Notebook on Cluster…'),
    caption: trans.__('Run the whole notebook on a cluster'),
    icon: hyperPodIcon,
    describedBy: { args: NO_ARGUMENTS },
    isEnabled,
    execute: async () => {
      const panel = currentNotebook(tools);
      return panel && ask(tools, cellsSource(tools, panel), { isWhole: true });
    }
  });
  app.commands.addCommand(CommandIDs.runAgain, {
    label: trans.__('Run Selected Cells on Cluster Again'),
    caption: trans.__(
      'Run the selected cells with the last settings, without a dialog'
    ),
    icon: hyperPodIcon,
    describedBy: { args: NO_ARGUMENTS },
    isEnabled,
    execute: () => runAgain(tools)
  });
}

async function ask(
  tools: ITools,
  source: ISubmitSource,
  options?: Pick<ISubmitOptions, 'start' | 'isWhole'>
): Promise<IPreview | IRun | null> {
  const { askAndSubmit } = await import('./submitting');
  return askAndSubmit(tools, source, options);
}

async function submit(
  tools: ITools,
  args: Arguments
): Promise<IPreview | IRun | null> {
  const { previewNow, submitNow } = await import('./submitting');
  const { cluster, source, spec } = await requestOf(tools, args);
  const start = { cluster, spec: spec ?? {} };
  if (args.preview === true) {
    return previewNow(tools, source, start);
  }
  if (args.run === true) {
    return submitNow(tools, source, start);
  }
  return ask(tools, source, spec || cluster ? { start } : undefined);
}

/** The last settings of the notebook, at once; the dialog when there are none, or they don't do any more. */
async function runAgain(tools: ITools): Promise<IPreview | IRun | null> {
  const panel = currentNotebook(tools);
  if (!panel) {
    return null;
  }
  const source = cellsSource(tools, panel);
  const last = await tools.memory.last(source.path ?? '');
  if (!last) {
    return ask(tools, source);
  }
  const { submitNow } = await import('./submitting');
  try {
    return await submitNow(tools, source, last);
  } catch (reason) {
    const { code, isRefused } = ApiError.of(reason);
    if (code === COST_NOT_CONFIRMED) {
      // The user was asked, and would rather not.
      return null;
    }
    if (isRefused) {
      // The dialog says what is wrong, and where.
      return ask(tools, source);
    }
    // It may have been sent: the dialog would make another run of it, the same once more does not.
    const { trans } = tools.hyperPod;
    failed(
      trans.__(
        'It is unknown whether %1 was submitted. %2 You can safely submit it again: it is still the same run.',
        source.label,
        whyText(reason, trans)
      )
    );
    throw reason;
  }
}

interface IWanted {
  readonly source: ISubmitSource;
  readonly cluster: string | null;
  readonly spec: JsonObject | null;
}

async function requestOf(tools: ITools, args: Arguments): Promise<IWanted> {
  const cluster = textOf(args, 'cluster');
  const spec = isRecord(args.spec) ? (args.spec as JsonObject) : null;
  const cloneOf = textOf(args, 'cloneOf');
  if (cloneOf !== null) {
    return clone(tools, cloneOf, cluster, spec);
  }
  const path = textOf(args, 'path') ?? currentNotebook(tools)?.context.path;
  if (path === undefined) {
    throw new Error(
      tools.hyperPod.trans.__('Specify a file or open a notebook first.')
    );
  }
  const source = await pathSource(tools, path);
  const cellIds = Array.isArray(args.cells) ? args.cells.map(String) : null;
  return { source: { ...source, cellIds }, cluster, spec };
}

/** A run with its own settings, over which come those that are given. */
async function clone(
  tools: ITools,
  runId: string,
  cluster: string | null,
  spec: JsonObject | null
): Promise<IWanted> {
  const { runClient } = tools.hyperPod;
  const [run, old] = await Promise.all([
    runClient.get(runId),
    runClient.spec(runId)
  ]);
  const { source, ...settings } = old as JsonObject;
  return {
    source: {
      label: run.name,
      path: null,
      folder: '',
      spec: source as JsonObject,
      cellIds: null,
      cloneOf: runId,
      owner: run.user,
      view: null,
      editor: null
    },
    cluster: cluster ?? run.cluster,
    spec: { ...settings, ...spec }
  };
}

function textOf(args: Arguments, name: string): string | null {
  const value = args[name];
  return typeof value === 'string' && value !== '' ? value : null;
}
