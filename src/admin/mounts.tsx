import { TranslationBundle } from '@jupyterlab/translation';
import { folderIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { IMountGroup, IMounts } from './types';

/**
 * Who mounts what, now and after the changes, side by side. Whose folder changes is marked.
 */
export function MountsPicture(props: {
  before: IMounts;
  after: IMounts;
  /** Whether the changes were made. */
  isDone: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { after, before, isDone, trans } = props;
  const was = placeOf(before);
  return (
    <div className="jp-HyperPod-Admin-picture">
      <Side
        title={isDone ? trans.__('Before') : trans.__('Now')}
        mounts={before}
        isMoved={() => false}
        trans={trans}
      />
      <span className="jp-HyperPod-Admin-arrow" aria-hidden="true">
        →
      </span>
      <Side
        title={trans.__('After')}
        mounts={after}
        isMoved={(name, group) => was.get(name) !== keyOf(group)}
        trans={trans}
      />
    </div>
  );
}

function Side(props: {
  title: string;
  mounts: IMounts;
  isMoved: (name: string, group: IMountGroup) => boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { isMoved, mounts, title, trans } = props;
  const id = React.useId();
  return (
    <section aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <ul>
        {mounts.groups.map(group => (
          <li key={keyOf(group)} data-kind={group.kind}>
            <strong>
              {group.kind !== 'none' && (
                <folderIcon.react tag="span" aria-hidden="true" />
              )}
              {groupText(group, trans)}
              <span className="jp-HyperPod-count">
                {trans._n('%1 user', '%1 users', group.count)}
              </span>
            </strong>
            <span>
              {group.names.map((name, index) => (
                <React.Fragment key={name}>
                  {index > 0 && ', '}
                  {isMoved(name, group) ? (
                    <mark title={trans.__('Changes')}>{name}</mark>
                  ) : (
                    name
                  )}
                </React.Fragment>
              ))}
              {group.count > group.names.length &&
                trans.__(' and %1 more', group.count - group.names.length)}
            </span>
          </li>
        ))}
      </ul>
      <p>
        {mounts.new_profiles === null
          ? trans.__('Future users: not mounted')
          : trans.__('Future users: %1', mounts.new_profiles)}
      </p>
    </section>
  );
}

function groupText(
  { kind, path }: IMountGroup,
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'shared':
      return path ?? '';
    case 'per-user':
      return trans.__('A folder per user');
    default:
      return trans.__('Not mounted');
  }
}

function keyOf({ kind, path }: IMountGroup): string {
  return `${kind} ${path ?? ''}`;
}

/** The group of each user that is named. */
function placeOf({ groups }: IMounts): ReadonlyMap<string, string> {
  return new Map(
    groups.flatMap(group =>
      group.names.map((name): [string, string] => [name, keyOf(group)])
    )
  );
}
