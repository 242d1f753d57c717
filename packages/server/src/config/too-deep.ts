import { Lexer } from 'yaml'

const MOST_BRACKETS = 32
const MOST_COLUMNS = 200

/** Marks that the lexer adds to the tokens of the text. */
const marks = new Set(['\x02', '\x18', '\x1f'])

/**
 * tooDeep returns the offset from which a YAML text is nested too deep, or undefined. Call it
 * before parsing: the parser recurses, and a stack overflow could end the process.
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
