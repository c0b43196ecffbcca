import type { Schema } from '../api';

/** A step of the script that runs when this space starts. */
export type ILifecycleStep = Schema<'LifecycleStep'>;

/** How far that script has come. */
export type ILifecycle = Schema<'LifecycleAnswer'>;

/** The end of its log; `cut`: there is more before it in the file. */
export type ILifecycleLog = Schema<'LifecycleLog'>;
