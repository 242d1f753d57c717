// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

/** @typedef {{ packages: Record<string, { version?: string, optional?: boolean }> }} Lockfile */

/**
 * isStale tells whether the installed packages differ from the lockfile. Optional packages
 * may be missing: they are for other platforms.
 * @param {Lockfile} wanted @param {Lockfile} installed
 * @returns {boolean}
 */
export function isStale(wanted, installed) {
  return Object.entries(wanted.packages).some(([path, { version, optional }]) => {
    if (path === '') return false
    const found = installed.packages[path]
    return found ? found.version !== version : !optional
  })
}

/**
 * installPeers runs `npm ci` in the folder of the benchmark if its packages are missing or stale.
 * @param {URL} bench
 */
export function installPeers(bench) {
  const read = (/** @type {string} */ path) =>
    JSON.parse(readFileSync(new URL(path, bench), 'utf8'))
  const installed = 'node_modules/.package-lock.json'
  if (existsSync(new URL(installed, bench))) {
    if (!isStale(read('package-lock.json'), read(installed))) return
  }
  npm(bench, ['ci', '--no-fund', '--no-audit'])
}

/**
 * npm runs a command of npm in a folder, its output on stderr, and throws if it fails.
 * @param {URL} folder @param {string[]} args
 */
export function npm(folder, args) {
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed`)
}
