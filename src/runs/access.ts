import type { Schema } from '../api';

/** How to open a shell on one of a run's nodes. */
export type IShell = Schema<'Shell'>;

/** The shells on a run's nodes. */
export type IRunAccess = Schema<'RunAccess'>;
