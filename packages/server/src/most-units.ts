import { tokenBucket } from 'sluice'

/** MOST_UNITS is the library's largest limit and largest cost: 10^12. */
export const MOST_UNITS = tokenBucket.algorithm.mostLimit
