/** Stands for a folder on the nodes; it is put in place before the command is run. */
const BUNDLE = '$BUNDLE/';

/** Words as a shell would take them, quoted where they need it. */
export function shellText(words: readonly string[]): string {
  return words
    .map(word =>
      word.startsWith(BUNDLE) && word !== BUNDLE
        ? BUNDLE + quoted(word.slice(BUNDLE.length))
        : quoted(word)
    )
    .join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replace(/'/g, `'"'"'`)}'`;
}
