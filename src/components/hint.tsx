import { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import { ReadonlyJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import { CommandIDs } from '../tokens';

/** What a hint’s command is here. */
export interface IHintAction {
  readonly command: string;
  readonly args: ReadonlyJSONObject;
  readonly label: string;
}

/** A hint without commands of a terminal, and what is offered instead of them. */
export interface IHint {
  readonly text: string;
  readonly actions: readonly IHintAction[];
}

const RUN_ID = /^\d{8}-\d{6}-[a-z0-9]+$/;
const NAME = /^[a-z0-9][\w-]*$/;
/** What only leads to a command. */
const LEAD = /^(list|see|try|later|to |run$)/;
const COMMAND = /'?\bhpj ([a-z-]+)((?: (?:'[^']*'|[^\s;,']+))*)'?/;

let registry: CommandRegistry | null = null;

/** What does what a hint offers: the application’s commands. */
export function setHintCommands(commands: CommandRegistry | null): void {
  registry = commands;
}

/** A hint of the server for a page: its commands become actions, and its options words. */
export function parseHint(hint: string, trans: TranslationBundle): IHint {
  const actions: IHintAction[] = [];
  const texts: string[] = [];
  for (const clause of hint.split('; ')) {
    const match = COMMAND.exec(clause);
    if (match === null) {
      texts.push(withoutOptions(clause));
      continue;
    }
    const [, name, words] = match;
    const action = actionOf(name, words.trim().split(' '), trans);
    if (action !== null && !actions.some(one => one.label === action.label)) {
      actions.push(action);
    }
    const before = clause.slice(0, match.index).trim();
    if (before.endsWith(':') && !LEAD.test(before)) {
      texts.push(withoutOptions(before.slice(0, -1)));
    }
  }
  // Words that cannot be cut are better than none.
  return texts.length === 0 && actions.length === 0
    ? { text: hint, actions }
    : { text: texts.filter(Boolean).join('; '), actions };
}

/** A hint’s words alone, where there is no room for buttons. */
export function hintText(hint: string, trans: TranslationBundle): string {
  return parseHint(hint, trans).text;
}

/** A sentence of the server without what is to be typed in a terminal. */
export function plainText(text: string): string {
  const clauses = text.split('; ').filter(clause => !COMMAND.test(clause));
  return clauses.length === 0
    ? text
    : clauses.map(clause => withoutOptions(clause)).join('; ');
}

/** Options are named in words: `--time-limit 2h` is the time limit 2h. */
function withoutOptions(clause: string): string {
  return (
    clause
      .replace(/: use --.*$/, '')
      // The page has a field for it.
      .replace(/--take-over/g, '“Overwrite settings that were made elsewhere”')
      .replace(/ (?:with|in) --[a-z-]+(?=[,.;]|$)/g, '')
      .replace(/--([a-z][a-z-]*)/g, (_, name: string) =>
        name.replace(/-/g, ' ')
      )
  );
}

/** What a command of a terminal is here; null: nothing. */
function actionOf(
  name: string,
  words: readonly string[],
  trans: TranslationBundle
): IHintAction | null {
  const [first = '', second = ''] = words;
  switch (name) {
    case 'doctor':
      return {
        command: CommandIDs.openDoctor,
        args: first === '--cluster' && second ? { cluster: second } : {},
        label: trans.__('Run HyperPod Doctor')
      };
    case 'logs':
    case 'show':
    case 'why':
      return RUN_ID.test(first)
        ? {
            command: CommandIDs.openRun,
            args: { runId: first },
            label: name === 'logs' ? trans.__('Open log') : trans.__('Open run')
          }
        : clusterAction(first, trans);
    case 'clusters':
    case 'jobs':
    case 'nodes':
    case 'queues':
      return clusterAction(first, trans);
    case 'config':
      return first === 'add' && NAME.test(second)
        ? {
            command: CommandIDs.connectCluster,
            args: { cluster: second },
            label: trans.__('Connect %1', second)
          }
        : null;
    case 'runs':
      return {
        command: CommandIDs.openRuns,
        args: {},
        label: trans.__('Show runs')
      };
    case 'storage':
      return {
        command: CommandIDs.openStorage,
        args: {},
        label: trans.__('Open storage')
      };
    default:
      return null;
  }
}

function clusterAction(name: string, trans: TranslationBundle): IHintAction {
  return NAME.test(name)
    ? {
        command: CommandIDs.openCluster,
        args: { cluster: name },
        label: trans.__('Open %1', name)
      }
    : {
        command: CommandIDs.showPanel,
        args: {},
        label: trans.__('Show clusters')
      };
}

/**
 * What to do about something, with a button for each command that there is here.
 */
export function Hint(props: {
  hint: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { text, actions } = parseHint(props.hint, props.trans);
  const offered = actions.filter(({ command }) =>
    registry?.hasCommand(command)
  );
  return (
    <>
      {text && <p>{text}</p>}
      {offered.map(({ args, command, label }) => (
        <button
          key={label}
          type="button"
          className="jp-HyperPod-button"
          onClick={() => void registry?.execute(command, args)}
        >
          {label}
        </button>
      ))}
    </>
  );
}
