import { tokenBucket } from 'sluice'

/** MOST_UNITS is the largest cost that a limiter takes, and the largest limit: 10^12. */
export const MOST_UNITS = tokenBucket.algorithm.mostLimit
