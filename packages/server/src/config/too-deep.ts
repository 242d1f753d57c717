import { Lexer } from 'yaml'

const MOST_BRACKETS = 32
const MOST_COLUMNS = 200

/** Tokens that the lexer adds: they are not in the text. */
const marks = new Set(['\x02', '\x18', '\x1f'])

/**
 * tooDeep finds the place in a YAML text from which it nests deeper than any configuration does, or
 * undefined. Look before parsing: the parser recurses, and may end the process.
 */
export function tooDeep(text: string): number | undefined {
  // Each level in block style needs a column or two of indentation, or a dash.
  const indented = new RegExp(`^[ \\t?:-]{${MOST_COLUMNS},}`, 'm').exec(text)
  if (indented) return indented.index
  let depth = 0
  let offset = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') depth += 1
    else if (token === ']' || token === '}') depth -= 1
    if (depth > MOST_BRACKETS) return offset
    if (!marks.has(token)) offset += token.length
  }
  return undefined
}
