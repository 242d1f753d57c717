import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import type { Problem } from './config-error.ts'
import { type Path, pathText, shown } from './path-text.ts'
import { tooDeep } from './too-deep.ts'
import { type Env, fillIn } from './variables.ts'

/** MOST_BYTES is the largest size of a configuration file. */
export const MOST_BYTES = 1_000_000
const MOST_SYNTAX_PROBLEMS = 20
const MOST_FROM_ALIASES = 10_000
const MOST_ALIASES_IN_ALIASES = 16

/** Source is a parsed YAML text. Only its syntax has been checked. */
export interface Source {
  /** Tables without prototype, lists, strings, numbers, booleans and null. */
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** Makes a problem at the value of a path, or at the nearest existing value around it. */
  problem(path: Path, message: string): Problem
  /** Makes a problem at the name of a value rather than at the value. */
  problemAtName(path: Path, message: string): Problem
  /** The value as it is written, before variables are replaced; undefined where there is none. */
  written(path: Path): unknown
}

/** readYaml reads a YAML or JSON text and fills in variables. It never throws. */
export function readYaml(text: string, env: Env): Source {
  const problems: Problem[] = []
  const lines = new LineCounter()
  const values = new Map<string, { offset: number; written: unknown }>()
  const names = new Map<string, number>()
  const anchors = new Map<string, Node>()
  let inAlias = 0
  let fromAliases = 0

  function problemAt(offset: number, path: Path, message: string): Problem {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1), path: pathText(path), message }
  }

  function offsetOf(path: Path): number {
    for (let length = path.length; length > 0; length -= 1) {
      const found = values.get(idOf(path.slice(0, length)))
      if (found) return found.offset
    }
    return values.get('')?.offset ?? 0
  }

  function readNode(node: Node | null, path: Path, around: number): unknown {
    const offset = node?.range?.[0] ?? around
    const complain = (message: string) => problems.push(problemAt(offset, path, message))
    if (isAlias(node)) return aliased(node.source, path, offset)
    const keep = (written: unknown) => values.set(idOf(path), { offset, written })
    if (inAlias > 0) fromAliases += 1
    let value: unknown = null
    if (isMap(node)) {
      value = Object.create(null)
      keep(value)
      for (const { key, value: item } of node.items) {
        readItem(value as Record<string, unknown>, key as Node, item as Node | null, path, offset)
      }
    } else if (isSeq(node)) {
      value = []
      keep(value)
      for (const [i, item] of node.items.entries()) {
        ;(value as unknown[]).push(readNode(item as Node | null, [...path, i], offset))
      }
    } else if (isScalar(node)) {
      value = node.value
      keep(value)
      if (typeof value === 'string') value = fillIn(value, env, complain)
      else if (value !== null && typeof value !== 'number' && typeof value !== 'boolean') {
        complain('is of a type that is not supported here. Write a string, in quotes.')
      }
    } else keep(null)
    if (node?.anchor) anchors.set(node.anchor, node)
    return value
  }

  function readItem(
    table: Record<string, unknown>,
    key: Node | null,
    item: Node | null,
    path: Path,
    around: number,
  ): void {
    const offset = key?.range?.[0] ?? around
    if (!isScalar(key) || typeof key.value === 'symbol') {
      problems.push(problemAt(offset, path, 'a name must be a string. Put it in quotes.'))
      return
    }
    // The source text: 007 is a name, not a number.
    const name = typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
    const own = [...path, name]
    if (name === '__proto__') {
      problems.push(problemAt(offset, own, 'this name cannot be used. Choose another one.'))
    } else if (Object.hasOwn(table, name)) {
      const { line } = lines.linePos(names.get(idOf(own)) ?? 0)
      const message = `${shown(name)} appears twice, first on line ${line}. Remove one of them.`
      problems.push(problemAt(offset, own, message))
    } else {
      names.set(idOf(own), offset)
      table[name] = readNode(item, own, offset)
    }
  }

  function aliased(name: string, path: Path, offset: number): unknown {
    const target = anchors.get(name)
    const refuse = (message: string) => {
      problems.push(problemAt(offset, path, message))
      values.set(idOf(path), { offset, written: null })
      return null
    }
    if (!target)
      return refuse(`no value before this has the anchor &${name}. Write the value here.`)
    if (fromAliases > MOST_FROM_ALIASES) return null
    if (inAlias > MOST_ALIASES_IN_ALIASES) {
      return refuse('aliases are nested too deep. Write the value here.')
    }
    inAlias += 1
    const value = readNode(target, path, offset)
    inAlias -= 1
    if (inAlias === 0 && fromAliases > MOST_FROM_ALIASES) {
      return refuse(
        `aliases expand to more than ${MOST_FROM_ALIASES} values. Use fewer aliases (*).`,
      )
    }
    return value
  }

  function start(): unknown {
    if (Buffer.byteLength(text) > MOST_BYTES) {
      problems.push(problemAt(0, [], 'the file is larger than 1 MB. Make it smaller.'))
      return undefined
    }
    const deep = tooDeep(text)
    if (deep !== undefined) {
      for (const { index } of text.slice(0, deep).matchAll(/\n/g)) lines.addNewLine(index + 1)
      problems.push(
        problemAt(deep, [], 'values are nested too deep from here. Remove some levels.'),
      )
      return undefined
    }
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      // The parser's own check takes quadratic time in the number of names.
      uniqueKeys: false,
    })
    const wrong = [...document.errors, ...document.warnings].slice(0, MOST_SYNTAX_PROBLEMS)
    for (const { message, pos, code } of wrong) {
      problems.push(problemAt(pos[0], [], syntaxMessage(message, code)))
    }
    return wrong.length > 0 ? undefined : readNode(document.contents as Node | null, [], 0)
  }

  return {
    value: start(),
    problems,
    problem: (path, message) => problemAt(offsetOf(path), path, message),
    problemAtName: (path, message) =>
      problemAt(names.get(idOf(path)) ?? offsetOf(path), path, message),
    written: (path) => values.get(idOf(path))?.written,
  }
}

function idOf(path: Path): string {
  return path.join('\0')
}

function syntaxMessage(message: string, code: string): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here. Keep one, without ---.'
  const [first] = message.slice(0, 200).split('\n')
  return `this is not YAML: ${first}. Check the indentation, brackets and quotes near here; in [ ] and { } put strings with special characters in quotes.`
}
