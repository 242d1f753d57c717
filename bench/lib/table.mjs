// @ts-check

/**
 * textTable aligns cells with spaces: the first column to the left, the others to the right.
 * @param {readonly string[]} header @param {readonly (readonly string[])[]} rows
 * @returns {string}
 */
export function textTable(header, rows) {
  const widths = header.map((_, i) => Math.max(...[header, ...rows].map((row) => row[i].length)))
  const line = (/** @type {readonly string[]} */ cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .trimEnd()
  return [line(header), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)]
    .join('\n')
    .concat('\n')
}

/**
 * markdownTable returns the same as a table of Markdown.
 * @param {readonly string[]} header @param {readonly (readonly string[])[]} rows
 * @returns {string}
 */
export function markdownTable(header, rows) {
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  const rule = `|${header.map((_, i) => (i === 0 ? '---' : '---:')).join('|')}|\n`
  return line(header) + rule + rows.map(line).join('')
}

/**
 * numberText formats a number with three significant digits, from a thousand up with all, in groups.
 * @param {number} value
 * @returns {string}
 */
export function numberText(value) {
  const places = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toLocaleString('en-US', {
    minimumFractionDigits: places,
    maximumFractionDigits: places,
    signDisplay: 'negative',
  })
}
