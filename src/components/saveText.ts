/**
 * Have the browser save a text as a file on the user's machine.
 *
 * @param kind - its media type
 */
export function saveText(
  name: string,
  text: string,
  kind = 'text/markdown'
): void {
  const blob = new Blob([text], { type: `${kind};charset=utf-8` });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(link.href);
}
