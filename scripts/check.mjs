import { spawn } from 'node:child_process'
import { delimiter, join, resolve } from 'node:path'

/** CI machines have two cores. */
const AT_ONCE = 2

/**
 * The checks, in order. A step that comes `after` another runs only if that one has passed.
 * `--without-tests` skips those that `npm test` includes.
 */
const all = [
  { name: 'format and lint', run: 'biome ci --colors=off .' },
  { name: 'types', run: 'tsc --build' },
  { name: 'import arrows', run: 'node scripts/arrows.mjs' },
  { name: 'published files', run: 'node scripts/dist.mjs', after: 'types' },
  { name: 'exports and files', run: 'node scripts/exports.mjs', after: 'published files' },
  { name: 'doc comments', run: 'node scripts/doc-comments.mjs', after: 'published files' },
  { name: 'publint', run: 'npm run publint', after: 'published files' },
  { name: 'attw', run: 'npm run attw', after: 'published files' },
  { name: 'packed size', run: 'npm run --silent packed', after: 'published files' },
  { name: 'knip', run: 'knip' },
  { name: 'bundle size', run: 'npm run --silent size' },
  {
    name: 'documents',
    isTest: true,
    run: 'vitest run --project system test/errors-doc.test.ts test/readme.test.ts test/docs-links.test.ts',
  },
]
const withoutTests = process.argv.includes('--without-tests')
const steps = all.filter(({ isTest }) => !(isTest && withoutTests))

const root = resolve(import.meta.dirname, '..')
const { FORCE_COLOR: _, ...inherited } = process.env
const path = join(root, 'node_modules', '.bin') + delimiter + process.env.PATH
const env = { ...inherited, NO_COLOR: '1', PATH: path }

const startedMs = performance.now()
const results = new Map()
const running = new Set()
for (const step of steps) results.set(step.name, start(step))
const failed = []
for (const [name, result] of results) {
  const { state, seconds, output } = await result
  console.log(`${state.padEnd(8)} ${name.padEnd(18)} ${seconds.toFixed(1).padStart(5)} s`)
  if (state !== 'ok') failed.push(name)
  if (state === 'failed') console.log(`\n${output.trim().replace(/^/gm, '    ')}\n`)
}
const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
if (failed.length > 0) {
  console.log(`${failed.length} of ${steps.length} did not pass: ${failed.join(', ')}`)
  process.exitCode = 1
} else {
  console.log(`All ${steps.length} passed in ${seconds} s`)
}

async function start({ run, after }) {
  if (after && (await results.get(after)).state !== 'ok') {
    return { state: 'skipped', seconds: 0, output: '' }
  }
  while (running.size >= AT_ONCE) await Promise.race(running)
  const result = execute(run)
  running.add(result)
  result.finally(() => running.delete(result))
  return result
}

function execute(run) {
  const startMs = performance.now()
  const [command, ...options] = run.split(' ')
  return new Promise((done) => {
    let output = ''
    const end = (state) =>
      done({ state, seconds: (performance.now() - startMs) / 1_000, output: output || state })
    const child = spawn(command, options, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', (error) => {
      output += error.message
      end('failed')
    })
    child.on('close', (code) => end(code === 0 ? 'ok' : 'failed'))
  })
}
