import type { Schema } from '../api';

/** A check: what was looked at, how it is, and who mends what is not well. */
export type ICheck = Schema<'DoctorCheck'>;

/** A stage of a run's path, with how its checks are. */
export type IStage = Schema<'DoctorStage'>;

/** The name of a stage. */
export type Stage = IStage['stage'];

/** An examination, as far as it has come. */
export type IExamination = Schema<'DoctorExamination'>;
