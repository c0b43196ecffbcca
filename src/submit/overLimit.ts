/** Code of a run that may cost more than the user has to confirm. */
export const COST_NOT_CONFIRMED = 'cost_not_confirmed';
