import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Plugin, parseSync } from 'vite'

const root = resolve(import.meta.dirname, '..')
const compare = JSON.stringify(join(import.meta.dirname, 'readme-compare.ts'))

/** Block is the TypeScript between two fences of a document. */
export interface Block {
  /** The module name by which a test imports, and so runs, the block. */
  readonly id: string
  readonly file: string
  /** The line of the document where the code begins, counted from 1. */
  readonly line: number
  readonly code: string
  /** False for a block marked `ts no-run`. */
  readonly runs: boolean
}

/** documents lists README.md, even if it is missing, and every document under docs/. */
export function documents(): string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  const pages = docs.filter((path) => path.endsWith('.md')).sort()
  return ['README.md', ...pages.map((path) => `docs/${path.replaceAll('\\', '/')}`)]
}

/** readBlocks returns the blocks of a document; none if it is missing. */
export function readBlocks(file: string): Block[] {
  return existsSync(join(root, file)) ? blocksOf(file, readFileSync(join(root, file), 'utf8')) : []
}

/** blocksOf finds the `ts` blocks of a Markdown text; fences may be indented. */
export function blocksOf(file: string, markdown: string): Block[] {
  const blocks: Block[] = []
  let fence = ''
  let info = ''
  let code: string[] = []
  markdown.split('\n').forEach((text, i) => {
    const found = /^ *(`{3,}) *([^`]*)$/.exec(text.trimEnd())
    if (fence === '') {
      if (found) [, fence, info] = found
      code = []
    } else if (found?.[2] === '' && found[1].length >= fence.length) {
      fence = ''
      const [language, ...words] = info.split(/\s+/)
      if (language !== 'ts') return
      const id = `readme:${file}/${blocks.length}.ts`
      const line = i + 1 - code.length
      blocks.push({ id, file, line, code: code.join('\n'), runs: !words.includes('no-run') })
    } else {
      code.push(text)
    }
  })
  if (fence !== '') throw new Error(`${file}: the last block of code is not closed`)
  return blocks
}

/**
 * rewritten returns the block as a module that throws if a value differs from the shown one. A
 * shown value follows a statement, on its line or the next, as `//=> value` or `//=> throws CODE`;
 * lines of `//` and three spaces continue it. Only statements outside functions and braces can show
 * one, since others may never run. Lines keep the numbers they have in the document.
 */
export function rewritten({ file, line, code }: Block): string {
  const at = (offset: number) => `${file}:${line + lines(code.slice(0, offset))}`
  const { program, comments, errors } = parseSync('block.ts', code)
  if (errors.length > 0) throw new Error(`${at(0)}: ${errors[0].message}`)
  const marks = comments.filter((c) => c.type === 'Line' && c.value.startsWith('=>'))
  if (marks.length === 0) {
    throw new Error(`${at(0)}: the block shows no value with //=>. If it cannot run: ts no-run`)
  }
  let result = code
  for (const mark of marks.reverse()) {
    const where = at(mark.start)
    const statement = program.body.findLast(({ end }) => end <= mark.start)
    const between = statement && code.slice(statement.end, mark.start)
    if (!statement || between?.trim() !== '' || lines(between) > 1) {
      throw new Error(`${where}: //=> must follow a statement outside functions and braces`)
    }
    const source = code.slice(statement.start, statement.end).replace(/;$/, '')
    const check = checked(where, statement, source, shownText(code, mark))
    result = result.slice(0, statement.start) + check + result.slice(statement.end)
  }
  return `${'\n'.repeat(line - 1)}import * as readme from ${compare}; ${result}`
}

type Statement = ReturnType<typeof parseSync>['program']['body'][number]

/** Returns the statement replaced or followed by a comparison. */
function checked(where: string, statement: Statement, source: string, text: string): string {
  const spot = JSON.stringify(where)
  const variable = variableOf(statement)
  const code = /^throws (\w+)$/.exec(text)?.[1]
  if (code !== undefined && statement.type === 'ExpressionStatement') {
    return /\bawait\b/.test(source)
      ? `await readme.rejectsCode(${spot}, '${code}', async () => (${source}));`
      : `readme.throwsCode(${spot}, '${code}', () => (${source}));`
  }
  const value = text.replace(/(["'`])(?:\\.|(?!\1).)*\1|…/g, (found) =>
    found === '…' ? '...readme.more' : found,
  )
  if (parseSync('value.ts', `(${value})`).errors.length > 0) {
    throw new Error(`${where}: cannot read the shown value ${text}`)
  }
  const shown = `${spot}, ${JSON.stringify(text)}`
  if (statement.type === 'ExpressionStatement') {
    return `readme.shows(${shown}, (${source}), (${value}));`
  }
  if (variable && code === undefined) {
    return `${source}; readme.shows(${shown}, ${variable}, (${value}));`
  }
  throw new Error(`${where}: //=> must follow an expression or the declaration of one variable`)
}

function variableOf(statement: Statement): string | undefined {
  if (statement.type !== 'VariableDeclaration' || statement.declarations.length > 1)
    return undefined
  const { id } = statement.declarations[0]
  return id.type === 'Identifier' ? id.name : undefined
}

/** Returns the text after `//=>`, with its continuation lines. */
function shownText(code: string, mark: { start: number }): string {
  const [first, ...rest] = code.slice(mark.start).split('\n')
  const end = rest.findIndex((text) => !/^ *\/\/ {3}/.test(text))
  const more = rest.slice(0, end === -1 ? rest.length : end)
  return [first.replace('//=>', ''), ...more.map((text) => text.replace('//', ''))]
    .map((text) => text.trim())
    .join(' ')
}

function lines(text: string): number {
  return text.split('\n').length - 1
}

/** readmeBlocks lets a test import the block of a document: `readme:README.md/0.ts`. */
export function readmeBlocks(): Plugin {
  return {
    name: 'readme-blocks',
    resolveId: (id) => (id.startsWith('readme:') ? id : undefined),
    load(id) {
      const file = /^readme:(.+)\/\d+\.ts$/.exec(id)?.[1]
      const block = file && readBlocks(file).find((block) => block.id === id)
      return block ? rewritten(block) : undefined
    },
  }
}
