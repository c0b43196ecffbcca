import { IDraft } from './draft';
import { IStart } from './memory';
import { ISubmitSource } from './source';

/**
 * What a form said that was closed before its run was sent.
 */
export interface IKept extends Pick<IDraft, 'cluster' | 'texts' | 'smoke'> {
  readonly source: ISubmitSource;
}

/** Forms that were closed unsent, by what opens them; secrets are not among them. They last as long as the page. */
export type Drafts = Map<string, IKept>;

/** What a form is opened for: the same again finds its draft. */
export function draftKey(
  { cellIds, cloneOf, path }: ISubmitSource,
  start: IStart | undefined
): string {
  return JSON.stringify([cloneOf, path, cellIds !== null, start?.spec ?? {}]);
}
