import {
  listOf,
  numberOf,
  numberOrNull,
  partOrNull,
  Query,
  recordOf,
  textOf,
  textOrNull,
  truthOf,
  unseenOf
} from '..';

interface IThing {
  readonly name: string;
  readonly size: number | null;
  readonly count: number;
  readonly isBig?: boolean;
  readonly parts: readonly string[];
  readonly inner: { readonly x: number } | null;
}

const thing = recordOf<IThing>(
  { name: 'a', count: 2, isBig: true, parts: ['b'], inner: { x: 1 } },
  'thing'
);

describe('the readers of an answer', () => {
  it('give what is there', () => {
    expect(textOf(thing, 'name')).toBe('a');
    expect(textOrNull(thing, 'name')).toBe('a');
    expect(numberOf(thing, 'count')).toBe(2);
    expect(numberOrNull(thing, 'size')).toBeNull();
    expect(truthOf(thing, 'isBig')).toBe(true);
    expect(listOf(thing, 'parts', String)).toEqual(['b']);
    expect(partOrNull(thing, 'inner', () => 'read')).toBe('read');
    expect(unseenOf(thing, 'parts')).toEqual(['b']);
  });

  it('name what is not as the server says', () => {
    const other = recordOf<IThing>({ name: 1, parts: 'b' }, 'thing');
    expect(() => textOf(other, 'name')).toThrow('name is no text');
    expect(() => numberOf(other, 'count')).toThrow('count is no number');
    expect(() => listOf(other, 'parts', String)).toThrow('parts is no list');
    expect(() => recordOf([], 'thing')).toThrow('thing is no object');
  });

  // These lines hold when the types of the tests are checked (`jlpm typecheck:tests`).
  it('are not compiled for what the server does not have', () => {
    // @ts-expect-error there is no such field
    expect(textOrNull(thing, 'title')).toBeNull();
    // @ts-expect-error it is a number
    expect(textOrNull(thing, 'count')).toBeNull();
    // @ts-expect-error it may be null
    expect(() => numberOf(thing, 'size')).toThrow('size is no number');
    // @ts-expect-error it is no list
    expect(() => listOf(thing, 'name', String)).toThrow('name is no list');
    // @ts-expect-error nobody has looked at it
    const name: string = thing.name;
    expect(name).toBe('a');
    // @ts-expect-error there is no such parameter
    const query: Query<IThing> = { other: 'a' };
    expect(query).toBeDefined();
  });
});
