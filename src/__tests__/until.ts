const STEP_MS = 10;
const LIMIT_MS = 20_000;

/**
 * Wait until something holds, however busy the machine is.
 */
export async function until(holds: () => boolean): Promise<void> {
  const end = Date.now() + LIMIT_MS;
  while (!holds()) {
    if (Date.now() > end) {
      throw new Error(`it never became true: ${holds.toString()}`);
    }
    await new Promise(resolve => setTimeout(resolve, STEP_MS));
  }
}

/**
 * The dialog that is shown, once React has filled its header and its body, each of which it does a moment after it is there.
 */
export async function filledDialog(): Promise<HTMLElement> {
  const find = (part: string) =>
    document.querySelector<HTMLElement>(`.jp-Dialog${part}`);
  await until(
    () =>
      !!find(' .jp-Dialog-header')?.textContent &&
      !!find(' .jp-Dialog-body')?.textContent
  );
  return find('') as HTMLElement;
}
