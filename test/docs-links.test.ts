import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documents } from './readme-blocks.ts'

const root = resolve(import.meta.dirname, '..')
const pages = [...documents(), 'CONTRIBUTING.md', 'CHANGELOG.md', ...readmesUnder('examples')]
const textOf = (page: string) => readFileSync(join(root, page), 'utf8')

function readmesUnder(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && entry.name !== 'node_modules'
      ? readmesUnder(`${folder}/${entry.name}`)
      : entry.name.endsWith('.md')
        ? [`${folder}/${entry.name}`]
        : [],
  )
}

const BLOCK = /^( *)(`{3,}).*\n[\s\S]*?^\1\2`*$/gm

/** Returns the page without code, since links in code are not links. */
function prose(text: string): string {
  return text.replace(BLOCK, '').replace(/(`+)[^`][\s\S]*?\1/g, '')
}

/** Returns the anchors that GitHub makes from the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, heading] of text.replace(BLOCK, '').matchAll(/^#{1,6} +(.+)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = plain.replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    anchors.add(times === 0 ? anchor : `${anchor}-${times}`)
  }
  return anchors
}

/** Lists the broken links of a page into this repository. */
function brokenLinks(page: string): string[] {
  const links = [...prose(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link)
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false
    const [path, anchor] = link.split('#')
    const target = path === '' ? join(root, page) : resolve(root, dirname(page), path)
    if (!existsSync(target)) return true
    if (anchor === undefined) return false
    return statSync(target).isDirectory() || !anchorsOf(textOf(relative(root, target))).has(anchor)
  })
}

describe('the documents', () => {
  it.each(pages)('have no dead link in %s', (page) => expect(brokenLinks(page)).toEqual([]))

  it('have an index.md in every folder that names each of its pages', () => {
    const missing = pages
      .filter((page) => page.startsWith('docs/') && !page.endsWith('/index.md'))
      // One page for each algorithm, which the guide's own index lists.
      .filter((page) => {
        const folder = dirname(page) === 'docs/guide/algorithms' ? 'docs/guide' : dirname(page)
        const index = join(folder, 'index.md')
        return (
          !existsSync(join(root, index)) ||
          !textOf(index).includes(`](${relative(folder, page).replaceAll('\\', '/')})`)
        )
      })
    expect(missing).toEqual([])
  })
})
