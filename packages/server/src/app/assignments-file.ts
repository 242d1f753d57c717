import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseRule, SluiceError } from 'sluice'
import { localLimiter } from '../local-limiter.ts'
import type { Kept } from './assignments.ts'

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
    const { tiers, rules, ...others } = JSON.parse(text)
    if (Object.keys(others).length > 0) throw new Error('it has more than `tiers` and `rules`')
    return {
      tiers: tableOf(tiers, (tier): tier is string => typeof tier === 'string'),
      rules: tableOf(rules, isRules),
    }
  } catch (cause) {
    throw new SluiceError(
      'SLUICE_OPTION',
      `${file} is not a file of assignments: ${(cause as Error).message}. Mend it, or move it away.`,
      { cause },
    )
  }
}

/** Not an object: clients may be called `__proto__`. */
function tableOf<T>(table: unknown, isRight: (value: unknown) => value is T): Map<string, T> {
  if (typeof table !== 'object' || table === null) throw new Error('a table is missing')
  return new Map(
    Object.entries(table).map(([key, value]) => {
      if (!isRight(value)) throw new Error(`what is said of ${JSON.stringify(key)} makes no sense`)
      return [key, value]
    }),
  )
}

function isRules(value: unknown): value is readonly string[] {
  if (!Array.isArray(value)) return false
  // Rules that do not go together would fail with each request.
  localLimiter(value.map((text) => parseRule(text)))
  return true
}

/** writeAssignments writes a file beside, which then takes the place of the old one. */
export async function writeAssignments(file: string, { tiers, rules }: Kept): Promise<void> {
  const all = { tiers: Object.fromEntries(tiers), rules: Object.fromEntries(rules) }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(`${file}.new`, `${JSON.stringify(all, undefined, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
