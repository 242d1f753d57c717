import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { simulateCommand } from '../../cli/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-page-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function pageOf(args: readonly string[], log: string, name = 'a.html'): Promise<string> {
  const file = join(folder, name)
  await simulateCommand.run([...args, '--html', file], {
    input: () => Readable.from([Buffer.from(log)]),
    inputIsTerminal: false,
    write: async () => {},
    note: () => {},
  })
  return readFileSync(file, 'utf8')
}

describe('a page', () => {
  const lines = [0, 400, 1_000].map((second) => `{"time":${1.7e9 + second},"key":"a"}`)

  it('says what the plots show, in which unit, and until when', async () => {
    const page = await pageOf(['--rule', '1/1h'], lines.join('\n'))
    expect(page).toContain('<figcaption>Requests in 30 s</figcaption>')
    const ticks = [...page.matchAll(/<div class="ticks">(.*?)<\/div>/gs)].map(([, found]) => found)
    expect(ticks).toHaveLength(2)
    expect(ticks[0].replace(/<.*?>/g, '').split('\n')).toEqual([
      ...['22:13:20', '22:17:30', '22:21:40', '22:25:50', '22:30:00'],
    ])
    expect(page.match(/<i class="\w+"><\/i>[\w ]+/g)).toEqual([
      '<i class="no"></i>share of requests',
      '<i class="some"></i>share of clients',
      '<i class="all"></i>all',
      '<i class="no"></i>refused',
    ])
    expect(page).toContain('<figcaption>In 1h, logarithmic scale</figcaption>')
  })

  it('says how it was made', async () => {
    const page = await pageOf(['--rule', '1/1h'], lines.join('\n'), "it's.html")
    const name = `${folder}/it&#39;\\&#39;&#39;s.html`
    expect(page).toContain(`<code>sluice simulate --rule 1/1h --html &#39;${name}&#39;</code>`)
    expect(page).toMatch(/, version \d+\.\d+\.\d+\S*, 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC</)
  })

  it('of a single request has a bar', async () => {
    const page = await pageOf([], lines[0])
    expect(page).toContain('<rect class="all" x="0" y="0" width="900" height="100"/>')
    expect(page).not.toContain('NaN')
  })
})
