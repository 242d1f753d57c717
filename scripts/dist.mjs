// @ts-check
// npm run build: makes the files that packages/sluice publishes. `dist` is built from the output of
// tsc in
// `build`: scripts lose comments and long names of locals; declarations keep their comments, and
// CommonJS has one declaration file per entry, which refers to those of ESM. The documents are those
// of the repository, with absolute links.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { minifySync, parseSync } from 'vite'

const repository = resolve(import.meta.dirname, '..')
const root = join(repository, 'packages/sluice')
const dist = join(root, 'dist')
const stamp = join(root, 'build/.dist')

const built = filesIn('build')
const manifest = readFileSync(join(root, 'package.json'), 'utf8')
const hash = createHash('sha256')
  .update(manifest)
  .update(readFileSync(import.meta.filename))
for (const [path, text] of built) hash.update(path).update(text)
const made = hash.digest('hex')
const before = filesIn('dist')
if (before.size === 0 || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== made) {
  const after = published()
  for (const [path, text] of after) if (before.get(path) !== text) put(join(dist, path), text)
  for (const path of before.keys()) if (!after.has(path)) rmSync(join(dist, path))
  put(stamp, made)
}
for (const name of ['README', 'SECURITY', 'docs/reference/errors', 'docs/reference/limiter']) {
  const text = readFileSync(join(repository, `${name}.md`), 'utf8')
  put(join(root, `${name}.md`), withWholeLinks(text, posix.dirname(name)))
}

/** Returns the files of `dist`, by their paths in it. */
function published() {
  const files = new Map([['cjs/package.json', '{ "type": "commonjs" }\n']])
  for (const [path, text] of built) {
    const [, format, name] = /^(esm|cjs)\/(.*\.js)$/.exec(path) ?? []
    if (format === 'esm') files.set(name, minified(name, text, true))
    if (format === 'cjs') files.set(path, minified(path, text, false))
  }
  for (const entry of Object.values(JSON.parse(manifest).exports)) {
    if (typeof entry === 'string') continue
    const name = entry.import.types.replace('./dist/', '')
    addDeclarations(files, name)
    files.set(`cjs/${name}`, declarationsForCommonJs(name))
  }
  return files
}

/** @param {string} name @param {string} text @param {boolean} module */
function minified(name, text, module) {
  // Keep names for stack traces; in CommonJS, which is mainly for tests, only those of classes.
  const keepNames = { class: true, function: module }
  const result = minifySync(name, text, { module, mangle: { toplevel: true, keepNames } })
  if (result.errors.length > 0) throw new Error(`${name}: ${result.errors[0].message}`)
  return result.code
}

/**
 * Adds the declarations in a file, and those that it imports.
 * @param {Map<string, string>} files @param {string} name
 */
function addDeclarations(files, name) {
  if (files.has(name)) return
  const text = declarations(name).replace(/(['"]\.[^'"\n]*)\.ts(?=['"])/g, '$1.js')
  files.set(name, text)
  for (const [, path] of text.matchAll(/['"](\.[^'"\n]*)\.js['"]/g)) {
    const needed = posix.join(posix.dirname(name), `${path}.d.ts`)
    if (built.has(`esm/${needed}`)) addDeclarations(files, needed)
  }
}

/**
 * Returns the declarations of an entry's exports for CommonJS, in terms of the ES module.
 * @param {string} name
 */
function declarationsForCommonJs(name) {
  const from = `'${'../'.repeat(name.split('/').length)}${name.replace('.d.ts', '.js')}'`
  const attributes = "with { 'resolution-mode': 'import' }"
  const lines = [`import type * as esm from ${from} ${attributes}`]
  const types = []
  const module = name.replace('.d.ts', '.ts')
  const source = readFileSync(join(root, 'src', module), 'utf8')
  const { staticExports } = parseSync(module, source).module
  for (const { exportName, isType, moduleRequest } of staticExports.flatMap(
    (each) => each.entries,
  )) {
    const exported = exportName.name
    if (isType) {
      types.push(exported)
      continue
    }
    const file = posix.join(posix.dirname(name), moduleRequest?.value ?? posix.basename(module))
    const declared = new RegExp(
      String.raw`(/\*\*(?:(?!\*/)[^])*\*/\n)?export declare (function|const|class) ${exported}\b`,
    ).exec(declarations(file.replace('.ts', '.d.ts')))
    if (!declared) throw new Error(`${module}: ${exported} is not declared in ${file}`)
    lines.push(`${declared[1] ?? ''}export declare const ${exported}: typeof esm.${exported}`)
    if (declared[2] === 'class') lines.push(`export type ${exported} = esm.${exported}`)
  }
  if (types.length > 0) lines.push(`export type { ${types.join(', ')} } from ${from} ${attributes}`)
  return `${lines.join('\n')}\n`
}

/**
 * Returns a document of a folder whose links to files lead to the repository.
 * @param {string} text @param {string} folder
 */
function withWholeLinks(text, folder) {
  const { homepage } = JSON.parse(manifest)
  return text.replace(/\]\((?!https?:|#)([^)]+)\)/g, (_, link) => {
    const kind = /\.(png|svg)$/.test(link) ? 'raw' : 'blob'
    return `](${homepage}/${kind}/main/${posix.join(folder, link)})`
  })
}

/** @param {string} name */
function declarations(name) {
  const text = built.get(`esm/${name}`)
  if (text === undefined) throw new Error(`tsc wrote no ${name}`)
  return text
}

/**
 * Returns the texts in a folder of the package, by their paths in it.
 * @param {string} folder
 */
function filesIn(folder) {
  const from = join(root, folder)
  mkdirSync(from, { recursive: true })
  const entries = readdirSync(from, { recursive: true, withFileTypes: true })
  const paths = entries.flatMap((entry) =>
    entry.isFile() && !entry.name.startsWith('.') ? join(entry.parentPath, entry.name) : [],
  )
  return new Map(
    paths.sort().map((path) => {
      const name = path.slice(from.length + 1).replaceAll('\\', '/')
      return [name, readFileSync(path, 'utf8')]
    }),
  )
}

/** @param {string} path @param {string} text */
function put(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
