/** Numbers are a growing list of whole numbers; unwritten ones are 0. */
export interface Numbers {
  get(at: number): number
  set(at: number, value: number): void
  add(at: number, value: number): void
}

/**
 * createNumbers keeps numbers up to 2^32 − 1 in four bytes each, enough to count requests, or in a
 * `Float64Array` all exact integers.
 */
export function createNumbers(
  Cells: Uint32ArrayConstructor | Float64ArrayConstructor = Uint32Array,
): Numbers {
  let cells: Uint32Array | Float64Array = new Cells(1_024)

  function set(at: number, value: number): void {
    if (at >= cells.length) {
      const grown = new Cells(2 ** Math.ceil(Math.log2(at + 1)))
      grown.set(cells)
      cells = grown
    }
    cells[at] = value
  }

  const get = (at: number): number => (at < cells.length ? cells[at] : 0)
  return { get, set, add: (at, value) => set(at, get(at) + value) }
}
