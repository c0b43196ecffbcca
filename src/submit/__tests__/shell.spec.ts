import { shellText } from '../shell';

describe('shellText', () => {
  it.each([
    [['python3', '-u', '--lr=0.1', 'a/b.py'], 'python3 -u --lr=0.1 a/b.py'],
    [['a b', '', '$HOME', '*'], "'a b' '' '$HOME' '*'"],
    [["it's"], `'it'"'"'s'`],
    [['a\nb', 'ü'], "'a\nb' 'ü'"],
    [['$BUNDLE/code/main.py'], '$BUNDLE/code/main.py'],
    [['$BUNDLE/work/my file.py'], "$BUNDLE/'work/my file.py'"]
  ])('writes %j', (words, text) => {
    expect(shellText(words)).toBe(text);
  });
});
