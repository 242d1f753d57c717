// @ts-check
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

/** The rooms that an engine's folder may import. */
const engine = ['core', 'rows', 'stores/hash', 'stores/opened', 'stores/store']

/**
 * The rooms of each package, and the rooms that each may import besides itself. A room is the
 * folder or file of its name, or the files in `groups`. If two rooms contain a file, the first one
 * counts. `everything` excludes testing, which only tests may import.
 * @type {Record<string, Record<string, string[]>>}
 */
const rooms = {
  'packages/sluice/src': {
    index: ['everything'],
    core: [],
    algorithms: ['core'],
    rows: ['core'],
    'stores/hash': ['core'],
    'stores/store': ['core'],
    'stores/opened': ['core', 'rows', 'stores/store'],
    'stores/joint': ['core', 'rows', 'stores/store'],
    'stores/memory': engine,
    'stores/compact': engine,
    'stores/shared-memory': engine,
    'stores/remote': [
      ...engine,
      'stores/joint',
      'failure/soon',
      'failure/time-limit',
      'limiter/async-limiter',
    ],
    'stores/redis': [
      ...engine,
      'stores/joint',
      'algorithms/lua',
      'stores/remote',
      'failure/time-limit',
    ],
    failure: ['core', 'stores/memory/memory', 'stores/joint'],
    limiter: ['core', 'algorithms/penalty', 'stores/memory/memory', 'stores/joint', 'failure'],
    http: ['core', 'limiter'],
    // In Nest a refusal is an exception of @nestjs/common.
    'middleware/nest': ['core', 'http', 'npm'],
    middleware: ['core', 'http', 'types of frameworks'],
    compat: ['core', 'algorithms', 'limiter', 'stores/memory/memory'],
    outbound: ['core', 'limiter'],
    replay: ['core'],
    'reference model': ['core'],
    testing: ['everything', 'reference model'],
  },
  'packages/server/src': {
    settings: ['npm'],
    cli: [
      ...['settings', 'config', 'app', 'gateway', 'api', 'dashboard', 'metrics', 'simulate'],
      'npm',
    ],
    simulate: ['settings', 'gateway', 'npm'],
    config: ['settings', 'app', 'gateway', 'api', 'dashboard', 'metrics', 'npm'],
    app: ['settings', 'gateway', 'api', 'dashboard', 'metrics', 'npm'],
    gateway: ['settings', 'metrics', 'npm'],
    api: ['settings', 'metrics', 'npm'],
    dashboard: ['settings', 'metrics', 'npm'],
    metrics: ['settings', 'npm'],
  },
}

/** @type {Record<string, string[]>} */
const groups = {
  'reference model': [
    ...['testing/model', 'testing/model-counters', 'testing/model-decision'],
    ...['testing/model-penalty', 'testing/model-permit', 'testing/meters', 'testing/hold-meter'],
  ],
  settings: [
    ...[
      'settings',
      'limits',
      'local-limiter',
      'most-units',
      'problem',
      'decided',
      'start-error',
      'service-rule',
      'shown-rule',
    ],
  ],
}

/** Every file of the library may `import type` these. */
const contracts = ['stores/store', 'limiter/verbs', 'limiter/policy', 'limiter/penalty']

/** These files must not reach Node built-ins at run time, directly or through other files. */
const portable = ['index', 'middleware/fetch', 'middleware/hono']

const LIBRARY = 'packages/sluice/src'

/**
 * @typedef {{ file: string, line: number, says: string }} Violation
 * @typedef {{ from: string, typeOnly: boolean, line: number }} Import
 */

/**
 * checkArrows returns every import that the table does not allow. Tests may import anything.
 * @param {Record<string, string>} files texts by path from the root, with forward slashes
 * @returns {Violation[]}
 */
export function checkArrows(files) {
  /** @type {Violation[]} */
  const violations = []
  const sources = Object.keys(files).filter((file) => !isTest(file))
  const imports = new Map(sources.map((file) => [file, importsOf(file, files[file])]))
  for (const [file, list] of imports) {
    const root = rootOf(file)
    const room = root && roomOf(root, file)
    if (!room) {
      const says = 'is in no room: add it to the table of rooms in scripts/arrows.mjs'
      violations.push({ file, line: 1, says })
      continue
    }
    for (const line of room === 'index' ? ownCode(file, files[file]) : []) {
      violations.push({ file, line, says: 'has code of its own; index.ts only re-exports' })
    }
    for (const each of list) {
      const says = forbidden(root, room, file, each)
      if (says) violations.push({ file, line: each.line, says })
    }
  }
  return [...violations, ...builtins(imports)]
}

/**
 * Returns why an import is not allowed, or undefined.
 * @param {string} root @param {string} room @param {string} file @param {Import} found
 */
function forbidden(root, room, file, { from, typeOnly }) {
  const may = rooms[root][room]
  const allowed = `${room} may import ${[room, ...may].join(', ')}`
  if (isBuiltin(from)) return undefined
  if (!from.startsWith('.')) {
    // The fleet simulator uses the stand-in for Redis.
    if (from === 'sluice/testing' && room !== 'simulate') {
      return 'imports sluice/testing, which is for tests'
    }
    if (may.includes('npm') || (typeOnly && may.includes('types of frameworks'))) return undefined
    return `imports the package ${from}; ${allowed}${root === LIBRARY ? ', no package' : ''}`
  }
  const target = posix.join(posix.dirname(file), from)
  if (!target.startsWith(`${root}/`)) {
    return root === LIBRARY
      ? `imports ${target}, outside its package`
      : `imports ${target}; other packages are imported by name, such as 'sluice'`
  }
  if (isTest(target)) return `imports the test ${target}`
  const path = target.slice(root.length + 1)
  const other = roomOf(root, target)
  if (other === room) return undefined
  if (typeOnly && root === LIBRARY && isIn(contracts, path)) return undefined
  if (may.includes('everything') && !path.startsWith('testing/')) return undefined
  if (other && may.some((name) => name === other || isIn([name], path))) return undefined
  return `imports ${path}; ${allowed}${root === LIBRARY ? ', and types of the contracts' : ''}`
}

/**
 * Lists the Node built-ins that portable files reach at run time.
 * @param {Map<string, Import[]>} imports
 * @returns {Violation[]}
 */
function builtins(imports) {
  /** @type {Violation[]} */
  const violations = []
  const reached = new Set(portable.map((name) => `${LIBRARY}/${name}.ts`))
  for (const file of reached) {
    for (const { from, typeOnly, line } of imports.get(file) ?? []) {
      if (typeOnly) continue
      if (from.startsWith('.')) reached.add(posix.join(posix.dirname(file), from))
      if (!isBuiltin(from)) continue
      const says = `imports ${from}; files reached from ${portable.join(', ')} run without Node`
      violations.push({ file, line, says })
    }
  }
  return violations
}

/**
 * Lists every import, re-export, `import()` and `import('…')` type of a file.
 * @param {string} file @param {string} text
 * @returns {Import[]}
 */
function importsOf(file, text) {
  /** @type {Import[]} */
  const found = []
  walk(parsed(file, text).body, (node) => {
    const { source, start } = node
    if (source?.type !== 'Literal' || typeof source.value !== 'string') return
    const typeOnly =
      node.importKind === 'type' || node.exportKind === 'type' || node.type === 'TSImportType'
    found.push({ from: source.value, typeOnly, line: lineOf(text, start) })
  })
  return found
}

/**
 * Lists the lines of a file's statements that are not re-exports.
 * @param {string} file @param {string} text
 */
function ownCode(file, text) {
  return parsed(file, text)
    .body.filter((node) => !(node.type.startsWith('Export') && 'source' in node && node.source))
    .map((node) => lineOf(text, node.start))
}

/** @param {string} file @param {string} text */
function parsed(file, text) {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new SyntaxError(`${file}: ${errors[0].message}`)
  return program
}

/** @param {any} node @param {(node: any) => void} visit */
function walk(node, visit) {
  if (typeof node !== 'object' || node === null) return
  if (typeof node.type === 'string') visit(node)
  for (const child of Object.values(node)) walk(child, visit)
}

/** @param {string} text @param {number} offset */
function lineOf(text, offset) {
  return text.slice(0, offset).split('\n').length
}

/** @param {string} file */
function isTest(file) {
  return /\.(test|worker)\.ts$/.test(file)
}

/** @param {string} file */
function rootOf(file) {
  return Object.keys(rooms).find((root) => file.startsWith(`${root}/`))
}

/** @param {string} root @param {string} file */
function roomOf(root, file) {
  const path = file.slice(root.length + 1)
  return Object.keys(rooms[root]).find((room) => isIn(groups[room] ?? [room], path))
}

/** @param {string[]} names @param {string} path */
function isIn(names, path) {
  return names.some((name) => path === `${name}.ts` || path.startsWith(`${name}/`))
}

/**
 * readSources reads the TypeScript files of every package's `src`.
 * @param {string} root the repository
 */
export function readSources(root) {
  /** @type {Record<string, string>} */
  const files = {}
  for (const name of readdirSync(join(root, 'packages'))) {
    const folder = `packages/${name}/src`
    for (const path of readdirSync(join(root, folder), { recursive: true })) {
      const file = posix.join(folder, String(path).replaceAll('\\', '/'))
      if (/\.tsx?$/.test(file)) files[file] = readFileSync(join(root, file), 'utf8')
    }
  }
  return files
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = readSources(resolve(import.meta.dirname, '..'))
  const violations = checkArrows(files)
  for (const { file, line, says } of violations) console.error(`${file}:${line}: ${says}`)
  if (violations.length > 0) process.exitCode = 1
  else console.log(`The imports of ${Object.keys(files).length} files follow the table of rooms.`)
}
