import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseRule, SluiceError } from 'sluice'
import { z } from 'zod'
import type { Kept } from './assignments.ts'

const saved = z.strictObject({
  tiers: z.record(z.string(), z.string()),
  rules: z.record(z.string(), z.array(z.string())),
})

/** readAssignments reads a file. One that cannot be read is an error, lest it be overwritten. */
export async function readAssignments(file: string): Promise<Kept> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { tiers: new Map(), rules: new Map() }
  }
  try {
    const { tiers, rules } = saved.parse(JSON.parse(text))
    for (const rule of Object.values(rules).flat()) parseRule(rule)
    return { tiers: new Map(Object.entries(tiers)), rules: new Map(Object.entries(rules)) }
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${file} is not a file of assignments: ${(cause as Error).message}. Mend it, or move it away.`,
      { cause },
    )
  }
}

/** writeAssignments writes a file beside, which then takes the place of the old one. */
export async function writeAssignments(file: string, { tiers, rules }: Kept): Promise<void> {
  const all = { tiers: Object.fromEntries(tiers), rules: Object.fromEntries(rules) }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(`${file}.new`, `${JSON.stringify(all, undefined, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
