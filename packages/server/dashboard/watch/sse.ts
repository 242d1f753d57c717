/** SentEvent is a server-sent event. */
export interface SentEvent {
  readonly name: string
  readonly data: string
}

/**
 * createSseReader parses server-sent events from chunks of text. It supports what this server
 * sends: `event` and `data`, and lines that end with a line feed.
 */
export function createSseReader(): (piece: string) => SentEvent[] {
  let rest = ''
  return (piece) => {
    const blocks = (rest + piece).split('\n\n')
    rest = blocks.pop() ?? ''
    return blocks.map((block) => {
      const lines = block.split('\n')
      const of = (field: string) =>
        lines
          .filter((line) => line.startsWith(`${field}: `))
          .map((line) => line.slice(field.length + 2))
          .join('\n')
      return { name: of('event'), data: of('data') }
    })
  }
}
