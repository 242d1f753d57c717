/**
 * Lists holds the states that grow, for stores that can hold them: a growing rule's one cell in a
 * row is an index into it. List 0 is the empty one; it is shared and never written.
 */
export interface Lists {
  readonly all: Float64Array[]
  /** The index of a list from now on. */
  add(list: Float64Array): number
  /** Gives an index back; 0 stays. */
  remove(index: number): void
  clear(): void
}

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
