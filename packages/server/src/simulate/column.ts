/** Column is a list of whole numbers up to 2^32 − 1 that grows; what was never written is 0. */
export interface Column {
  get(at: number): number
  set(at: number, value: number): void
  add(at: number, value: number): void
}

/** createColumn keeps four bytes a number. Numbers above the largest stay at it. */
export function createColumn(): Column {
  let cells = new Uint32Array(1_024)

  function set(at: number, value: number): void {
    if (at >= cells.length) {
      const grown = new Uint32Array(2 ** Math.ceil(Math.log2(at + 1)))
      grown.set(cells)
      cells = grown
    }
    cells[at] = value > 0xffff_ffff ? 0xffff_ffff : value
  }

  const get = (at: number): number => (at < cells.length ? cells[at] : 0)
  return { get, set, add: (at, value) => set(at, get(at) + value) }
}
