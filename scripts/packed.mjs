// @ts-check
// npm run packed: measures the installed size of the library. With --install, both packages are
// also installed from tarballs in an empty project, and tried there.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** The limit for the files of the library, in bytes. */
const MOST = 1_000_000

const root = resolve(import.meta.dirname, '..')
const [library] = pack('--dry-run', '--workspace', 'sluice')
const [is, most] = [library.unpackedSize, MOST].map((size) => size.toLocaleString('en'))
console.log(`sluice: ${is} of ${most} bytes in ${library.files.length} files`)
if (library.unpackedSize > MOST) process.exitCode = 1
if (process.argv.includes('--install')) install()

/**
 * @param {string[]} options
 * @returns {{ filename: string, unpackedSize: number, files: unknown[] }[]}
 */
function pack(...options) {
  return JSON.parse(npm(root, 'pack', '--json', ...options))
}

function install() {
  const project = mkdtempSync(join(tmpdir(), 'sluice-packed-'))
  try {
    const packed = pack('--pack-destination', project, '-w', 'sluice', '-w', 'sluice-server')
    const tarballs = packed.map(({ filename }) => `./${filename}`)
    writeFileSync(join(project, 'package.json'), '{ "private": true }')
    npm(project, 'install', '--engine-strict', '--no-audit', '--no-fund', ...tarballs)
    const use = "createLimiter(tokenBucket({ limit: 1, per: '1s' })).allow('alice')"
    const names = '{ createLimiter, tokenBucket }'
    for (const [type, load] of [
      ['module', `import ${names} from 'sluice'`],
      ['commonjs', `const ${names} = require('sluice')`],
    ]) {
      const script = `${load}; if (!${use}) throw new Error('refused')`
      run(project, process.execPath, `--input-type=${type}`, '--eval', script)
    }
    run(project, process.execPath, 'node_modules/.bin/sluice', '--help')
    console.log('Both packages install in an empty project, and run there')
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/** @param {string} cwd @param {string[]} words */
function npm(cwd, ...words) {
  return run(cwd, 'npm', ...words)
}

/** @param {string} cwd @param {string} command @param {string[]} words */
function run(cwd, command, ...words) {
  return execFileSync(command, words, { cwd, encoding: 'utf8' })
}
