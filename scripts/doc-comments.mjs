// @ts-check
// Lists the public names of packages that have no doc comment.
import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'

/**
 * undocumented returns the exported declarations without a doc comment, and the members of exported
 * interfaces and classes, that users reach from these files.
 * @param {string[]} entries paths of declaration files
 * @param {(path: string) => string} read
 * @returns {string[]} such as `limiter/verbs.d.ts: Limiter.unblock`
 */
export function undocumented(entries, read) {
  /** @type {Set<string>} */
  const missing = new Set()
  /** @type {Set<string>} */
  const seen = new Set()
  const modules = new Map()

  /** @param {string} path */
  function moduleOf(path) {
    const known = modules.get(path)
    if (known) return known
    const text = read(path)
    const { program, comments } = parseSync(path, text)
    const ends = comments
      .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
      .map(({ end }) => end)
    const isDocumented = (/** @type {any} */ node) =>
      ends.some((end) => end <= node.start && text.slice(end, node.start).trim() === '')
    const made = { body: /** @type {any[]} */ (program.body), isDocumented }
    modules.set(path, made)
    return made
  }

  /**
   * Checks what a module exports under a name, wherever it is declared.
   * @param {string} path @param {string | undefined} name undefined for all that it exports
   */
  function check(path, name) {
    const { body, isDocumented } = moduleOf(path)
    /** @type {Map<string, boolean>} */
    const found = new Map()
    if (seen.has(`${path} ${name}`)) return
    seen.add(`${path} ${name}`)
    for (const node of body) {
      const from = sourceOf(path, node)
      if (from === undefined) continue
      if (node.type === 'ExportAllDeclaration') check(from, name)
      for (const { exported, imported, local } of node.specifiers ?? []) {
        const isAsked = name === undefined ? exported : [exported?.name, local.name].includes(name)
        if (isAsked) check(from, (imported ?? local).name)
      }
      const declared = node.declaration ?? node
      for (const own of declared.declarations ?? [declared]) {
        const id = own.id?.name
        const isExported = node.declaration !== undefined && node.declaration !== null
        if (!id || (name === undefined ? !isExported : name !== id)) continue
        // One doc comment is enough for all overloads.
        found.set(id, found.get(id) === true || isDocumented(node))
        for (const member of membersOf(own)) {
          if (isDocumented(member)) continue
          missing.add(`${path}: ${id}.${member.key?.name ?? member.key?.value ?? '()'}`)
        }
      }
    }
    for (const [id, isTold] of found) if (!isTold) missing.add(`${path}: ${id}`)
  }

  for (const entry of entries) check(entry, undefined)
  return [...missing].sort()
}

/**
 * Returns the module from which a statement exports: this one by default; undefined for a package.
 * @param {string} path @param {any} node @returns {string | undefined}
 */
function sourceOf(path, { source }) {
  if (!source) return path
  return source.value.startsWith('.')
    ? join(path, '..', source.value.replace(/\.js$/, '.d.ts'))
    : undefined
}

/**
 * Lists the members that readers see: not those with a well-known symbol, and of a method's
 * overloads all.
 * @param {any} node
 */
function membersOf({ body, typeAnnotation }) {
  const members = Array.isArray(body?.body) ? body.body : (typeAnnotation?.members ?? [])
  return members.filter(
    (/** @type {any} */ { key, kind, computed, accessibility }) =>
      key && !computed && kind !== 'constructor' && accessibility !== 'private',
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = resolve(import.meta.dirname, '../packages/sluice')
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = Object.values(exports).flatMap((/** @type {any} */ target) => {
    const types = target.types ?? target.import?.types
    return types ? [resolve(root, types)] : []
  })
  if (entries.length === 0) throw new Error('no entry has types')
  const missing = undocumented(entries, (path) => readFileSync(path, 'utf8'))
  for (const each of missing) console.error(`no doc comment: ${relative(root, each)}`)
  if (missing.length > 0) process.exitCode = 1
}
