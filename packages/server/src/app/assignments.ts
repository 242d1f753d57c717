import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseRule, SluiceError } from 'sluice'
import { z } from 'zod'
import type { Changes } from '../limits.ts'

const saved = z.strictObject({
  tiers: z.record(z.string(), z.string()),
  rules: z.record(z.string(), z.array(z.string())),
})

/**
 * openAssignments reads the tiers and rules that were given to clients at run time, and writes them
 * down whenever they change: to a file beside, which then takes the place of the old one. A file
 * that cannot be read is an error, lest it be overwritten.
 */
export async function openAssignments(file: string): Promise<Changes> {
  const { tiers, rules } = file === '' ? { tiers: {}, rules: {} } : await read(file)
  const changes = { tiers: new Map(Object.entries(tiers)), rules: new Map(Object.entries(rules)) }
  let last = Promise.resolve()
  async function write(): Promise<void> {
    const text = JSON.stringify(
      { tiers: Object.fromEntries(changes.tiers), rules: Object.fromEntries(changes.rules) },
      undefined,
      2,
    )
    await mkdir(dirname(file), { recursive: true })
    await writeFile(`${file}.new`, `${text}\n`, { mode: 0o600 })
    await rename(`${file}.new`, file)
  }
  return {
    ...changes,
    save() {
      if (file === '') return last
      // One after the other, so that the last state is the one that stays.
      const next = last.catch(() => {}).then(write)
      last = next
      return next
    },
  }
}

async function read(file: string): Promise<z.infer<typeof saved>> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { tiers: {}, rules: {} }
    throw error
  }
  try {
    const given = saved.parse(JSON.parse(text))
    for (const texts of Object.values(given.rules)) for (const rule of texts) parseRule(rule)
    return given
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${file} is not a file of assignments: ${(cause as Error).message}. Mend it, or move it away.`,
      { cause },
    )
  }
}
