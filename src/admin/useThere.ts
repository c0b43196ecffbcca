import * as React from 'react';

import { useLoaded } from '../components/useLoaded';
import { IAdminClient } from './client';
import { IDraft } from './draft';
import { IChoices, isOpen, IThere, IWork } from './types';

const NOTHING: IThere = { mode: null, shared_path: null };

/**
 * Which mode is there by now, where that can be told; null before it was read. It is read again once a plan was made or applied.
 */
export function useThere(
  client: IAdminClient,
  choices: IChoices,
  { domain, fileSystem }: IDraft,
  work: IWork
): IThere | null {
  const isKnown =
    choices.domains.some(({ id }) => id === domain) &&
    choices.file_systems.some(({ id }) => id === fileSystem);
  const load = React.useCallback(
    () =>
      isKnown ? client.there(domain, fileSystem) : Promise.resolve(NOTHING),
    [client, domain, fileSystem, isKnown]
  );
  const { error, renew, value } = useLoaded(load);
  const isBusy = isOpen(work) && work.state !== 'planned';
  const stage = `${work.number} ${work.state}`;
  const seen = React.useRef(stage);
  React.useEffect(() => {
    if (!isBusy && stage !== seen.current) {
      seen.current = stage;
      renew();
    }
  }, [isBusy, stage]);
  return error === null ? value : NOTHING;
}
