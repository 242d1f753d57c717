/** soon runs `task` once what has already arrived at sockets has been read. */
export const soon: (task: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (task) => setTimeout(task, 0)
