import * as React from 'react';

import { useLoaded } from '../components/useLoaded';
import { IAdminClient } from './client';
import { IDraft } from './draft';
import { IChoices, isOpen, IThere, IWork } from './types';

const NOTHING: IThere = { mode: null, sharedPath: null };

/**
 * Which mode is there by now, where that can be told; null before it was read. It is read again once a plan was applied.
 */
export function useThere(
  client: IAdminClient,
  choices: IChoices,
  { domain, fileSystem }: IDraft,
  work: IWork
): IThere | null {
  const isKnown =
    choices.domains.some(({ id }) => id === domain) &&
    choices.fileSystems.some(({ id }) => id === fileSystem);
  const load = React.useCallback(
    () =>
      isKnown ? client.there(domain, fileSystem) : Promise.resolve(NOTHING),
    [client, domain, fileSystem, isKnown]
  );
  const { error, renew, value } = useLoaded(load);
  const ended = isOpen(work) ? 0 : work.number;
  const seen = React.useRef(ended);
  React.useEffect(() => {
    if (ended !== 0 && ended !== seen.current) {
      renew();
    }
    seen.current = ended;
  }, [ended]);
  return error === null ? value : NOTHING;
}
