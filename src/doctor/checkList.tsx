import { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { ICheck } from './types';
import { groupText, LEVELS, levelText, whoText } from './words';

interface IProps {
  checks: readonly ICheck[];
  copy: (text: string) => void;
  trans: TranslationBundle;
}

/**
 * The problems, the worst first, and behind a count the checks that are ok.
 */
export function CheckList(
  props: IProps & {
    /** Leave out what is ok. */
    onlyBad: boolean;
    /** Whether the checks that are ok are shown at first. */
    isOpen: boolean;
  }
): JSX.Element {
  const { checks, isOpen, onlyBad, trans } = props;
  const id = React.useId();
  const well = checks.filter(({ level }) => level === 'ok');
  const bad = LEVELS.filter(level => level !== 'ok').flatMap(level =>
    checks.filter(check => check.level === level)
  );
  return (
    <>
      {bad.length > 0 && (
        <section aria-labelledby={id}>
          <h2 id={id}>{trans.__('Problems')}</h2>
          <Checks {...props} checks={bad} />
        </section>
      )}
      {well.length > 0 && !onlyBad && (
        <details className="jp-HyperPod-Doctor-well" open={isOpen}>
          <summary>
            {trans._n('%1 check OK', '%1 checks OK', well.length)}
          </summary>
          <Groups {...props} checks={well} />
        </details>
      )}
    </>
  );
}

/** Under the headings of their groups. */
function Groups(props: IProps): JSX.Element {
  const { checks, trans } = props;
  const id = React.useId();
  const groups = [...new Set(checks.map(check => check.group))];
  return (
    <>
      {groups.map(group => (
        <section key={group} aria-labelledby={`${id}-${group}`}>
          <h2 id={`${id}-${group}`}>{groupText(group, trans)}</h2>
          <Checks
            {...props}
            checks={checks.filter(check => check.group === group)}
          />
        </section>
      ))}
    </>
  );
}

function Checks({ checks, copy, trans }: IProps): JSX.Element {
  return (
    <ul className="jp-HyperPod-Doctor-checks">
      {checks.map(check => (
        <Check
          key={`${check.key}:${check.about ?? ''}`}
          check={check}
          copy={copy}
          trans={trans}
        />
      ))}
    </ul>
  );
}

function Check(props: {
  check: ICheck;
  copy: (text: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { check, copy, trans } = props;
  const { evidence, fix, group, level, name, who } = check;
  return (
    <li data-level={level}>
      <StateChip state={level} text={levelText(level, trans)} trans={trans} />
      <div>
        <strong>{name}</strong>
        {level !== 'ok' && <small>{groupText(group, trans)}</small>}
        <p>{evidence}</p>
        {fix !== null && (
          <div className="jp-HyperPod-Doctor-fix">
            <span>{whoText(who, trans)}</span>
            <pre>{fix}</pre>
            <button
              type="button"
              className="jp-HyperPod-button"
              title={trans.__('Copy the fix for %1', name)}
              aria-label={trans.__('Copy the fix for %1', name)}
              onClick={() => copy(fix)}
            >
              <copyIcon.react tag="span" />
            </button>
          </div>
        )}
      </div>
    </li>
  );
}
