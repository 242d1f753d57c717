import { spawnSync } from 'node:child_process'
import { delimiter, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fetched } from './fetched.mjs'

/** The versions to test besides the one that runs `npm test`. */
const VERSIONS = ['22', '24', '26']

const root = resolve(import.meta.dirname, '..')
const { values } = parseArgs({ options: { node: { type: 'string', multiple: true } } })
const results = (values.node ?? VERSIONS).map(tested)

console.log('\nnode        tests    seconds')
for (const { name, passed, seconds } of results) {
  console.log(`${name.padEnd(11)} ${(passed ? 'ok' : 'failed').padEnd(8)} ${seconds.padStart(7)}`)
}
if (results.some(({ passed }) => !passed)) process.exitCode = 1

/** Runs the whole suite on one version of Node, child processes included. */
function tested(version) {
  const node = fetched('node', version, 'bin/node')
  if (node === undefined) return { name: `v${version}`, passed: false, seconds: '-' }
  const name = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
  console.log(`\nRunning the tests on Node ${name}`)
  const startMs = performance.now()
  const { status } = spawnSync(node, [join(root, 'node_modules/vitest/vitest.mjs'), 'run'], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      PATH: dirname(node) + delimiter + process.env.PATH,
      // npm sets these to the Node it runs on itself.
      NODE: node,
      npm_node_execpath: node,
    },
  })
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
  return { name, passed: status === 0, seconds }
}
