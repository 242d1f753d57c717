// @ts-check

/**
 * growth returns the median of the last third of a series, divided by that of the third before. The
 * first third is the warm-up of the program.
 * @param {readonly number[]} figures
 */
export function growth(figures) {
  const third = Math.floor(figures.length / 3)
  if (third === 0) throw new Error(`too few figures to tell: ${figures.length}`)
  const [before, after] = [figures.slice(-2 * third, -third), figures.slice(-third)]
  return median(after) / median(before)
}

/** @param {readonly number[]} figures */
function median(figures) {
  return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)]
}
