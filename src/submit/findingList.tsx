import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { fieldAt } from './findings';
import { fixesOf } from './fixes';
import { hintOf } from './hints';
import { labelOf } from './labels';
import { SubmitModel } from './model';
import { IFinding, Level } from './types';

interface IProps {
  readonly model: SubmitModel;
  readonly trans: TranslationBundle;
  /** Go to a field. */
  readonly jump: (path: string) => void;
}

/**
 * What was found, each with what to do about it. Read out when it changes. What only informs is folded.
 */
export function FindingList(props: IProps): JSX.Element {
  const { model, trans } = props;
  const notes = model.findings.filter(({ level }) => level === 'info');
  const others = model.findings.filter(({ level }) => level !== 'info');
  return (
    <section
      className="jp-HyperPod-FindingList"
      aria-label={trans.__('Findings')}
      aria-live="polite"
      tabIndex={-1}
      data-findings
    >
      <Findings {...props} findings={others} />
      {notes.length > 0 && (
        <details>
          <summary>{trans._n('%1 note', '%1 notes', notes.length)}</summary>
          <Findings {...props} findings={notes} />
        </details>
      )}
    </section>
  );
}

function Findings(
  props: IProps & { findings: readonly IFinding[] }
): JSX.Element | null {
  const { findings } = props;
  return findings.length === 0 ? null : (
    <ul>
      {findings.map((finding, at) => (
        <Finding key={at} {...props} finding={finding} />
      ))}
    </ul>
  );
}

function Finding(props: IProps & { finding: IFinding }): JSX.Element {
  const { finding, jump, model, trans } = props;
  const field = fieldAt(finding.field, model.fields);
  const fixes = fixesOf(finding, trans);
  const hint = hintOf(finding, fixes.length > 0, trans);
  return (
    <li data-level={finding.level}>
      <span className="jp-HyperPod-FindingList-text">
        <strong>{levelText(finding.level, trans)}</strong>{' '}
        {sentence(finding.message)}
        {hint && (
          <span className="jp-HyperPod-FindingList-hint">
            {' '}
            {sentence(hint)}
          </span>
        )}
      </span>
      {(field !== undefined || fixes.length > 0) && (
        <span className="jp-HyperPod-FindingList-actions">
          {fixes.map(fix => (
            <button
              key={fix.label}
              type="button"
              className="jp-HyperPod-button"
              onClick={() => void model.fix(fix)}
            >
              {fix.label}
            </button>
          ))}
          {field && fixes.length === 0 && (
            <button
              type="button"
              className="jp-HyperPod-link"
              onClick={() => jump(field.path)}
            >
              {trans.__('Go to “%1”', labelOf(field, trans))}
            </button>
          )}
        </span>
      )}
    </li>
  );
}

/** The server's words as a sentence. */
export function sentence(text: string): string {
  const first = /^[a-z]+(?=[ ,:])/.test(text)
    ? text[0].toUpperCase() + text.slice(1)
    : text;
  return /[.!?:]$/.test(first) ? first : `${first}.`;
}

function levelText(level: Level, trans: TranslationBundle): string {
  switch (level) {
    case 'error':
      return trans.__('Error:');
    case 'warning':
      return trans.__('Warning:');
    default:
      return trans.__('Note:');
  }
}
