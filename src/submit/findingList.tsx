import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { fieldAt } from './findings';
import { fixOf } from './fixes';
import { hintOf } from './hints';
import { labelOf } from './labels';
import { SubmitModel } from './model';
import { IFinding, Level } from './types';

interface IProps {
  model: SubmitModel;
  trans: TranslationBundle;
  /** Go to a field. */
  jump: (path: string) => void;
}

/**
 * What was found, each with what to do about it. Read out when it changes.
 */
export function FindingList(props: IProps): JSX.Element {
  const { model, trans } = props;
  const { findings } = model;
  return (
    <section
      className="jp-HyperPod-FindingList"
      aria-label={trans.__('Findings')}
      aria-live="polite"
      tabIndex={-1}
      data-findings
    >
      {(findings.length === 0 || hasProblems(model) || model.isDistrusted) && (
        <p className="jp-HyperPod-FindingList-none">{stateWords(props)}</p>
      )}
      {findings.length > 0 && (
        <ul>
          {findings.map((finding, at) => (
            <Finding key={at} {...props} finding={finding} />
          ))}
        </ul>
      )}
    </section>
  );
}

function hasProblems(model: SubmitModel): boolean {
  return Object.keys(model.problems).length > 0;
}

function stateWords({ model, trans }: IProps): string {
  if (hasProblems(model)) {
    return trans.__('Some fields have errors.');
  }
  if (model.error) {
    return '';
  }
  if (model.isDistrusted) {
    return trans.__('The cluster checks the run after you confirm.');
  }
  return model.busy ? trans.__('Checking…') : trans.__('Ready to submit.');
}

function Finding(props: IProps & { finding: IFinding }): JSX.Element {
  const { finding, jump, model, trans } = props;
  const field = fieldAt(finding.field, model.fields);
  const fix = fixOf(finding, trans);
  const hint = hintOf(finding.code, trans) ?? finding.hint;
  return (
    <li data-level={finding.level}>
      <strong>{levelText(finding.level, trans)}</strong> {finding.message}
      {hint && <span className="jp-HyperPod-FindingList-hint"> {hint}</span>}
      {(field !== undefined || fix) && (
        <span className="jp-HyperPod-FindingList-actions">
          {fix && (
            <button
              type="button"
              className="jp-HyperPod-button"
              onClick={() => void model.fix(fix)}
            >
              {fix.label}
            </button>
          )}
          {field && (
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
