/** StartError says why the service cannot start, where it is nobody's mistake: exit code 1. */
export class StartError extends Error {}
