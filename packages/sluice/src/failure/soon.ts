/** soon runs `task` after the event loop has read the data that sockets have received. */
export const soon: (task: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : (task) => setTimeout(task, 0)
