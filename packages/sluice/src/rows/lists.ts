/**
 * Lists holds the states that grow, for stores that support them. The one cell that a growing rule
 * has in a row is an index into it. List 0 is empty, shared and never written.
 */
export interface Lists {
  readonly all: Float64Array[]
  /** Stores a list and returns its index. */
  add(list: Float64Array): number
  /** Frees an index. Index 0 stays. */
  remove(index: number): void
  clear(): void
}

/** createLists creates lists with only the shared empty one. */
export function createLists(): Lists {
  const empty: Float64Array = new Float64Array(3)
  const all = [empty]
  let free: number[] = []
  return {
    all,
    add(list) {
      const index = free.pop() ?? all.length
      all[index] = list
      return index
    },
    remove(index) {
      if (index === 0) return
      all[index] = empty
      free.push(index)
    },
    clear() {
      all.length = 1
      free = []
    },
  }
}
