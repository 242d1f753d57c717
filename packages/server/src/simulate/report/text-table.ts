/** TableColumn is one column: its heading, and whether it holds right-aligned numbers. */
export interface TableColumn {
  readonly head: string
  readonly right?: boolean
}

/** textTable aligns rows under headings, with two spaces between columns and before the first. */
export function textTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
): string[] {
  const widths = columns.map(({ head }, i) =>
    Math.max(head.length, ...rows.map((row) => row[i].length)),
  )
  const line = (cells: readonly string[]) =>
    `  ${cells
      .map((cell, i) => (columns[i].right ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join('  ')}`.trimEnd()
  return [line(columns.map(({ head }) => head)), ...rows.map(line)]
}

const LEVELS = '▁▂▃▄▅▆▇█'

/** sparkline draws counts as a row of bars; a count above 0 is always visible. */
export function sparkline(counts: readonly number[]): string {
  const most = Math.max(...counts, 1)
  return counts
    .map((count) => {
      if (count === 0) return ' '
      return LEVELS[Math.ceil((count / most) * LEVELS.length) - 1]
    })
    .join('')
}
