import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { findProgram } from './find-program.ts'

/** Each protocol, and variants that lack one of its parts: Spin must find an error in these. */
const models = {
  'two-phase': ['NO_ID', 'NO_DEADLINE', 'NO_GIVE_BACK'],
  holds: ['NO_GENERATION', 'NO_EXPIRY_CHECK', 'SHORT_RING', 'FORGOTTEN'],
}

/** Explores every state of a model. The last lines of the output have the number of errors. */
function search(name: string, ...variant: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-model-'))
  try {
    const model = new URL(`models/${name}.pml`, import.meta.url).pathname
    execFileSync(
      findProgram(['spin'], ['spin']),
      ['-a', ...variant.map((each) => `-D${each}`), model],
      { cwd: folder },
    )
    const flags = ['-O2', '-w', '-DSAFETY', '-DNOREDUCE', '-DCOLLAPSE']
    execFileSync(findProgram(['gcc'], ['gcc']), [...flags, '-o', 'pan', 'pan.c'], { cwd: folder })
    return spawnSync(join(folder, 'pan'), ['-E', '-m10000'], { cwd: folder, encoding: 'utf8' })
      .stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.each(Object.entries(models))('the model of %s', (name, variants) => {
  beforeAll(() => {
    findProgram(['spin'], ['spin'])
    findProgram(['gcc'], ['gcc'])
  }, 120_000)

  it('satisfies its assertions in every state', { timeout: 60_000 }, () => {
    const report = search(name)
    expect(report).toContain('errors: 0')
    expect(report).not.toContain('search depth too small')
  })

  it.each(variants)('violates one in the variant %s', { timeout: 60_000 }, (variant) => {
    expect(search(name, variant)).toMatch(/assertion violated[\s\S]*errors: 1/)
  })
})
