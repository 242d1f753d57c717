import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildServer } from './threads/crew.ts'

beforeAll(buildServer, 60_000)

const exec = promisify(execFile)

/** Runs the command as users do. Its fleets are processes on virtual time. */
async function simulate(...args: string[]): Promise<string> {
  const words = ['packages/server/bin/sluice.js', 'simulate', '--fleet', ...args]
  return (await exec(process.execPath, words)).stdout
}

describe('simulating fleets', () => {
  it('compares them in a table with a summary', async () => {
    const args = ['--nodes', '2,20', '--lease', '0,20', '--rate', '0.8x', '--for', '3s']
    const lines = (await simulate(...args)).split('\n')
    expect(lines[0]).toBe('1000/1s, 800 requests per second for one key, 3 s, seed 1')
    expect(lines[2]).toMatch(/^ {2}nodes +lease +offered +ideal +admitted .* bound +held$/)
    expect(lines.slice(3, 7).map((line) => line.trim().split(/ +/).slice(0, 2))).toEqual([
      ['2', '-'],
      ['2', '20'],
      ['20', '-'],
      ['20', '20'],
    ])
    expect(lines[10]).toMatch(
      /^2 nodes, a lease of 20: [\d.]+ % of the trips saved, nothing refused/,
    )
  })

  it('prints the output that docs/operate/fleet.md shows', async () => {
    const text = readFileSync('docs/operate/fleet.md', 'utf8')
    const examples = [...text.matchAll(/```text\n\$ npx sluice simulate --fleet (.*)\n([^`]*)```/g)]
    expect(examples.length).toBeGreaterThan(2)
    for (const [, args, output] of examples) {
      const words = args.matchAll(/'([^']*)'|(\S+)/g)
      const printed = await simulate(...Array.from(words, ([, quoted, word]) => quoted ?? word))
      expect(printed).toBe(output)
    }
  })

  it('is deterministic across processes', async () => {
    const faults = ['--outage', '1s-2s', '--failover', '2500ms', '--lost-ms', '300']
    const args = ['--nodes', '10', '--lease', '10', '--for', '4s', '--json', ...faults]
    const [one, two] = await Promise.all([simulate(...args), simulate(...args)])
    expect(two).toBe(one)
    expect(JSON.parse(one)).toMatchObject([{ bound: { held: true }, setup: { nodes: 10 } }])
  })

  it('has a separate exit code for a process that died, since no bound was broken', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
    // Only the child process of a fleet has process.send.
    writeFileSync(join(folder, 'die.cjs'), 'if (process.send) process.exit(9)')
    const env = { ...process.env, NODE_OPTIONS: `--require ${join(folder, 'die.cjs')}` }
    const words = ['packages/server/bin/sluice.js', 'simulate', '--fleet', '--nodes', '1,2,3']
    const died = await exec(process.execPath, words, { env }).catch((error) => error)
    rmSync(folder, { recursive: true })
    expect(died).toMatchObject({ code: 3, stdout: '' })
    expect(died.stderr).toContain('sluice: the process of a fleet died: exit code 9.')
  })

  it('reports a load without requests', async () => {
    const failed = await simulate('--rate', '0.001', '--for', '1s').catch((error) => error)
    expect(failed).toMatchObject({ code: 2 })
    expect(failed.stderr).toBe('sluice: the load has no request. Raise --rate or --for.\n')
  })

  it.each([
    ['leases', '--lease', '10', '--pattern', 'bursts'],
    ['an outage', '--outage', '2s-4s'],
    ['an outage and no fleetSize', '--outage', '2s-4s', '--fleet-size', '1'],
    ['a failover', '--failover', '3s', '--lost-ms', '200', '--down-ms', '100'],
  ])(
    'keeps a thousand nodes within their bound, with %s',
    async (_, ...args) => {
      const load = ['--rule', '10000/1s', '--rate', '1.2x', '--for', '6s']
      const [report] = JSON.parse(await simulate('--nodes', '1000', '--json', ...load, ...args))
      expect(report.bound).toMatchObject({ held: true })
      expect(report.offered).toBeGreaterThan(70_000)
    },
    20_000,
  )
})
