import { momentText } from '../words';

describe('momentText', () => {
  afterEach(() => {
    document.documentElement.lang = '';
  });

  it('writes times in the language of the page', () => {
    const written = (language: string): string => {
      document.documentElement.lang = language;
      return momentText('2026-03-05T12:00:00.000Z');
    };
    expect(written('de_DE')).toContain('05.03.2026');
    expect(written('en-US')).toContain('Mar 5, 2026');
    expect(written('no language')).toContain('2026');
  });
});
