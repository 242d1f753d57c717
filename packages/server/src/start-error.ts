/**
 * StartError says why the service cannot start, apart from mistakes in its options: exit code 1.
 */
export class StartError extends Error {}
