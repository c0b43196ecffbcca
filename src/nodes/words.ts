import { TranslationBundle } from '@jupyterlab/translation';

import { IErrorBody } from '../api';
import { errorText } from '../components/errorMessage';
import { hintText } from '../components/hint';
import { INodeResult, NodeAction } from './types';

/** What a button says: the three dots where it asks first. */
export function nodeActionLabel(
  action: NodeAction,
  trans: TranslationBundle
): string {
  switch (action) {
    case 'reboot':
      return trans.__('Reboot…');
    case 'replace':
      return trans.__('Replace…');
    case 'drain':
      return trans.__('Drain…');
    case 'resume':
      return trans.__('Resume');
  }
}

/** What it does, in a sentence. */
export function nodeActionCaption(
  action: NodeAction,
  trans: TranslationBundle
): string {
  switch (action) {
    case 'reboot':
      return trans.__('AWS restarts the same instances');
    case 'replace':
      return trans.__('AWS replaces the instances with new ones');
    case 'drain':
      return trans.__('Accept no new jobs; running jobs continue');
    case 'resume':
      return trans.__('Accept jobs again');
  }
}

/** What is asked before, and what the button that confirms it says. */
export function nodeActionOn(
  action: NodeAction,
  count: number,
  trans: TranslationBundle
): string {
  switch (action) {
    case 'reboot':
      return trans._n('Reboot %1 node', 'Reboot %1 nodes', count);
    case 'replace':
      return trans._n('Replace %1 node', 'Replace %1 nodes', count);
    case 'drain':
      return trans._n('Drain %1 node', 'Drain %1 nodes', count);
    case 'resume':
      return trans._n('Resume %1 node', 'Resume %1 nodes', count);
  }
}

/** What came of it for one node. */
export function nodeResultText(
  action: NodeAction,
  result: INodeResult,
  trans: TranslationBundle
): string {
  const name = namesText(result);
  if (result.error !== null) {
    return trans.__('%1: %2', name, whyText(result.error, trans));
  }
  switch (action) {
    case 'reboot':
      return trans.__('%1 is being rebooted.', name);
    case 'replace':
      return trans.__('%1 is being replaced.', name);
    case 'drain':
      return trans.__('%1 accepts no new jobs.', name);
    case 'resume':
      return trans.__('%1 accepts jobs again.', name);
  }
}

/** A node as it was named, with the name that the other side has for it. */
export function namesText(node: {
  readonly name: string;
  readonly instance: string | null;
  readonly node: string | null;
}): string {
  const others = [node.instance, node.node].filter(
    other => other !== null && other !== node.name
  );
  return others.length > 0 ? `${node.name} (${others.join(', ')})` : node.name;
}

/** An error in one line, with what to do about it. */
export function whyText(error: IErrorBody, trans: TranslationBundle): string {
  const words =
    error.code === 'missing_right' ? error.message : errorText(error, trans);
  const hint = error.hint && hintText(error.hint, trans);
  return hint ? `${words} (${hint})` : words;
}
