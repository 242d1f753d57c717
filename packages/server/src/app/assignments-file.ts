import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseRule, SluiceError } from 'sluice'
import { localLimiter } from '../local-limiter.ts'
import type { Kept } from './assignments.ts'

/** readAssignments reads a file. A file that cannot be read is an error, and is not overwritten. */
export async function readAssignments(file: string): Promise<Kept> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { tiers: new Map(), rules: new Map() }
  }
  try {
    const { tiers, rules, ...others } = JSON.parse(text)
    if (Object.keys(others).length > 0) throw new Error('it has more than `tiers` and `rules`')
    return {
      tiers: tableOf(tiers, (tier): tier is string => typeof tier === 'string'),
      rules: tableOf(rules, isRules),
    }
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${file} is not a valid file of assignments: ${(cause as Error).message}. Repair it, or move it away.`,
      { cause },
    )
  }
}

/** A Map and not an object, since `__proto__` may be the key of a client. */
function tableOf<T>(table: unknown, isRight: (value: unknown) => value is T): Map<string, T> {
  if (typeof table !== 'object' || table === null) throw new Error('a table is missing')
  return new Map(
    Object.entries(table).map(([key, value]) => {
      if (!isRight(value)) throw new Error(`the value of ${JSON.stringify(key)} is invalid`)
      return [key, value]
    }),
  )
}

function isRules(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false
  // Throws for rules that cannot be combined, which would fail every request.
  localLimiter(value.map((text) => parseRule(text)))
  return true
}

/** writeAssignments writes a new file, and renames it over the old one. */
export async function writeAssignments(file: string, { tiers, rules }: Kept): Promise<void> {
  const all = { tiers: Object.fromEntries(tiers), rules: Object.fromEntries(rules) }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(`${file}.new`, `${JSON.stringify(all, undefined, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
