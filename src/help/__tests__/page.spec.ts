import { readable } from '../page';

describe('A page of the documentation', () => {
  it('has links to pages that are there, and no pictures', () => {
    const text =
      '![a](images/a.png)\n<picture>\n<img src="x">\n</picture>\n' +
      'See [storage](storage.md#x), [REST](rest-api.md), [web](https://a.b/c.md) and [here](#h).';
    expect(readable(text, ['storage'])).toBe(
      'See [storage](storage.md#x), REST, [web](https://a.b/c.md) and [here](#h).'
    );
  });
});
