const STEP_MS = 10;
const LIMIT_MS = 4500;

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
