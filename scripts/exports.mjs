// @ts-check
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The files in a package's src that are meant for its users. */
const PUBLIC = [/^index\.ts$/, /^\w[\w-]*\/index\.ts$/, /^(middleware|compat)\/[\w-]+\.ts$/]

/**
 * The conditions of an export and their files. A resolver takes the first condition that it knows.
 */
const conditions = (/** @type {string} */ module) => ({
  'sluice-source': `./src/${module}.ts`,
  import: { types: `./dist/${module}.d.ts`, default: `./dist/${module}.js` },
  require: { types: `./dist/cjs/${module}.d.ts`, default: `./dist/cjs/${module}.js` },
})

/**
 * @typedef {ReturnType<typeof conditions>} Target
 * @typedef {{ name: string, exports?: Record<string, string | Target>, bin?: Record<string, string>,
 *   typesVersions?: { '*'?: Record<string, string[]> } }} Manifest
 */

/**
 * checkExports compares the exports of a package.json with the files of its package, and lists
 * the differences.
 * @param {Manifest} manifest
 * @param {string[]} files paths from the package's folder, with forward slashes
 * @returns {string[]}
 */
export function checkExports({ name, exports = {}, bin = {}, typesVersions = {} }, files) {
  /** @type {string[]} */
  const differences = []
  const there = new Set(files.map((file) => `./${file}`))
  const exported = new Set()
  const missing = (/** @type {string} */ what, /** @type {string} */ file) => {
    if (!there.has(file)) differences.push(`${name}: ${what} names ${file}, which is not there`)
  }
  for (const [entry, target] of Object.entries(exports)) {
    if (typeof target === 'string') {
      missing(`exports["${entry}"]`, target)
      continue
    }
    const module = target.import?.default?.replace(/^\.\/dist\/(.*)\.js$/, '$1')
    const expected = JSON.stringify(conditions(module))
    if (JSON.stringify(target) !== expected) {
      differences.push(`${name}: exports["${entry}"] must be ${expected}`)
    }
    exported.add(`./src/${module}.ts`)
    for (const [condition, named] of Object.entries(target)) {
      for (const file of typeof named === 'string' ? [named] : Object.values(named)) {
        missing(`exports["${entry}"].${condition}`, file)
      }
    }
    // TypeScript's older module resolution ignores `exports`.
    const older = typesVersions['*']?.[entry.slice(2)]
    if (entry !== '.' && older?.join() !== target.require?.types) {
      differences.push(`${name}: typesVersions must have ${target.require?.types} for ${entry}`)
    }
  }
  for (const [command, file] of Object.entries(bin)) {
    missing(`bin.${command}`, file.replace(/^(\.\/)?/, './'))
  }
  for (const file of '.' in exports ? files : []) {
    const path = /^src\/(.*)$/.exec(file)?.[1]
    if (path === undefined || path.endsWith('.test.ts') || exported.has(`./${file}`)) continue
    if (PUBLIC.some((pattern) => pattern.test(path))) {
      differences.push(`${name}: ${file} is meant for users, but exports does not name it`)
    }
  }
  return differences
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = resolve(import.meta.dirname, '../packages')
  const differences = readdirSync(packages).flatMap((name) => {
    const folder = join(packages, name)
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const listed = ['src', 'dist', 'bin'].filter((path) => existsSync(join(folder, path)))
    const files = listed.flatMap((path) =>
      readdirSync(join(folder, path), { recursive: true, encoding: 'utf8' }).map(
        (file) => `${path}/${file.replaceAll('\\', '/')}`,
      ),
    )
    return checkExports(manifest, ['package.json', ...files])
  })
  for (const difference of differences) console.error(difference)
  if (differences.length > 0) process.exitCode = 1
}
