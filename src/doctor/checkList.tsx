import { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { StateChip } from '../components/stateChip';
import { ICheck } from './types';
import { groupText, levelText, whoText } from './words';

/**
 * The checks, under the headings of the places on the way.
 */
export function CheckList(props: {
  checks: readonly ICheck[];
  copy: (text: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { checks, copy, trans } = props;
  const id = React.useId();
  const groups = [...new Set(checks.map(check => check.group))];
  return (
    <>
      {groups.map(group => (
        <section key={group} aria-labelledby={`${id}-${group}`}>
          <h2 id={`${id}-${group}`}>{groupText(group, trans)}</h2>
          <ul className="jp-HyperPod-Doctor-checks">
            {checks
              .filter(check => check.group === group)
              .map(check => (
                <Check
                  key={`${check.key}:${check.about ?? ''}`}
                  check={check}
                  copy={copy}
                  trans={trans}
                />
              ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function Check(props: {
  check: ICheck;
  copy: (text: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { check, copy, trans } = props;
  const { evidence, fix, level, name, who } = check;
  return (
    <li data-level={level}>
      <StateChip state={level} text={levelText(level, trans)} trans={trans} />
      <div>
        <strong>{name}</strong>
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
