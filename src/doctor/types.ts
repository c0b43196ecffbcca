import type { Schema } from '../api';

/** A check: what was looked at, how it is, and who mends what is not well. */
export type ICheck = Schema<'DoctorCheck'>;

/** An examination, as far as it has come. */
export type IExamination = Schema<'DoctorExamination'>;
