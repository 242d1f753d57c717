/** Html is a string that is safe to insert into a page. */
export interface Html {
  readonly html: string
}

type Part = string | number | Html | readonly Html[]

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** html is a template tag: it escapes what is inserted, unless it is `Html` itself. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let result = texts[0]
  for (const [i, part] of parts.entries()) result += textOf(part) + texts[i + 1]
  return { html: result }
}

function textOf(part: Part): string {
  if (typeof part === 'number') return String(part)
  if (typeof part === 'string') return part.replace(/[&<>"']/g, (mark) => ESCAPES[mark])
  return 'html' in part ? part.html : part.map((each) => each.html).join('\n')
}

/** A cell of a table; numbers are right-aligned. */
export type Cell = string | { readonly right: string }

/** htmlTable makes a table; the first row has the headings. */
export function htmlTable([heads, ...rows]: readonly (readonly Cell[])[]): Html {
  const cells = (row: readonly Cell[], tag: 'th' | 'td') =>
    row.map((cell) => {
      const [text, mark] = typeof cell === 'string' ? [cell, ''] : [cell.right, 'right']
      return tag === 'th'
        ? html`<th class="${mark}">${text}</th>`
        : html`<td class="${mark}">${text}</td>`
    })
  return html`<div class="scroll"><table>
<thead><tr>${cells(heads, 'th')}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${cells(row, 'td')}</tr>`)}</tbody>
</table></div>`
}
