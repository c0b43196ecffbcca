import { answerOf } from '../../__tests__/answers';
import { askedOf, firstDraft, isOfOther, withThere } from '../draft';
import { IAsked } from '../types';
import { CHOICES, work } from './answers';

describe('a draft', () => {
  const choices = answerOf('AdminChoices', CHOICES);
  const none = answerOf('AdminWork', work(0, 'none'));
  const planned = answerOf('AdminWork', work(1, 'planned'));
  const { asked } = planned;

  it('begins with the plan that is shown, else with what is there', () => {
    const draft = firstDraft(none, choices);
    expect(draft).toMatchObject({ domain: 'd-1', fileSystem: 'fs-1' });
    // Nothing is chosen before it is known what is there.
    expect(withThere(draft, null).mode).toBeNull();
    const modes = [
      ['per-user', null, 'per-user', '/shared'],
      ['shared', '/team', 'shared', '/team'],
      ['both', '/team', 'shared', '/team'],
      ['both', null, 'per-user', '/shared'],
      [null, null, 'shared', '/shared']
    ] as const;
    for (const [mode, sharedPath, first, path] of modes) {
      expect(withThere(draft, { mode, shared_path: sharedPath })).toMatchObject(
        {
          mode: first,
          sharedPath: path
        }
      );
    }
    const there = { mode: 'shared', shared_path: '/team' } as const;
    expect(withThere(firstDraft(planned, choices), there).mode).toBe(
      'per-user'
    );
    const ended = answerOf('AdminWork', work(1, 'applied'));
    expect(withThere(firstDraft(ended, choices), there).mode).toBe('shared');
  });

  it('asks for the profiles that are named, and is told from another plan', () => {
    const draft = firstDraft(planned, choices);
    expect(isOfOther(asked as IAsked, draft)).toBe(false);
    // The folder that all share is of no concern here.
    const path = { ...draft, sharedPath: '/else' };
    expect(isOfOther(asked as IAsked, path)).toBe(false);
    const some = { ...draft, profiles: 'bob, carol  dave' };
    expect(askedOf(some).profiles).toEqual(['bob', 'carol', 'dave']);
    expect(isOfOther(asked as IAsked, some)).toBe(true);
    expect(isOfOther({ ...askedOf(some), mode: null }, some)).toBe(false);
    expect(askedOf(some, true).mode).toBeNull();
  });
});
