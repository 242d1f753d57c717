// @ts-check
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { Application } from 'typedoc'

const site = import.meta.dirname
const root = resolve(site, '..')
const docs = join(root, 'docs')
/** What VitePress reads: the pages of docs/, the generated pages of the API, and a home page. */
export const pages = join(site, '.pages')

const library = JSON.parse(readFileSync(join(root, 'packages/sluice/package.json'), 'utf8'))

/** writePages fills `pages` anew. */
export async function writePages() {
  rmSync(pages, { recursive: true, force: true })
  for (const entry of readdirSync(docs, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const from = join(entry.parentPath, entry.name)
    const to = join(pages, relative(docs, from))
    mkdirSync(dirname(to), { recursive: true })
    const content = readFileSync(from)
    writeFileSync(to, entry.name.endsWith('.md') ? pageOf(from, String(content)) : content)
  }
  writeFileSync(join(pages, 'index.md'), readFileSync(join(site, 'home.md')))
  await writeApi()
}

/** A page as the site shows it: files outside docs/ are named rather than linked. */
function pageOf(/** @type {string} */ from, /** @type {string} */ text) {
  return text.replace(/(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)/g, (link, shown, path) => {
    const target = resolve(dirname(from), path)
    if (!relative(docs, target).startsWith('..')) return link
    const file = relative(root, target)
    return shown.includes(file) ? shown : `${shown} (\`${file}\`)`
  })
}

/** One page for each entry point of the library, from its doc comments. */
async function writeApi() {
  const sources = Object.entries(library.exports).flatMap(([path, target]) => {
    const source = target['sluice-source']
    return source ? [{ name: join('sluice', path), source }] : []
  })
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: sources.map(({ source }) => join(root, 'packages/sluice', source)),
    tsconfig: join(site, 'tsconfig.json'),
    out: join(pages, 'reference/api'),
    readme: 'none',
    name: 'API',
    logLevel: 'Error',
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    disableGit: true,
    skipErrorChecking: true,
    groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
    gitRevision: 'main',
    ...{ entryFileName: 'index', hidePageHeader: true },
    ...{ hideBreadcrumbs: true, useCodeBlocks: true, expandParameters: false },
    ...{ parametersFormat: 'table', interfacePropertiesFormat: 'table' },
  })
  const project = await app.convert()
  if (!project) throw new Error('the doc comments cannot be read')
  for (const module of project.children ?? []) {
    // TypeDoc names a module after its file, or after the folder of an index.ts.
    const files = [`./src/${module.name}.ts`, `./src/${module.name}/index.ts`]
    const found = sources.find(({ source }) => files.includes(source))
    if (!found) throw new Error(`no entry point is ${module.name}`)
    module.name = found.name
  }
  await app.generateOutputs(project)
}
