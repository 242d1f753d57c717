// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'

/**
 * @typedef {object} Machine
 * @property {string} node
 * @property {string} v8
 * @property {string} platform
 * @property {string} arch
 * @property {string} cpu model
 * @property {number} cores
 * @property {number} memoryGb
 */

/**
 * describeMachine describes the machine of the measurements.
 * @returns {Machine}
 */
export function describeMachine() {
  return {
    node: process.versions.node,
    v8: process.versions.v8,
    platform: process.platform,
    arch: process.arch,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
  }
}

/**
 * readVersions returns the versions of Sluice, with its commit where git knows it, and of the peers
 * that are installed in `bench/`, or else next to it.
 * @param {URL} bench its folder
 * @param {readonly string[]} packages
 * @returns {Record<string, string>}
 */
export function readVersions(bench, packages) {
  const version = (/** @type {string} */ path) =>
    JSON.parse(readFileSync(new URL(path, bench), 'utf8')).version
  const commit = spawnSync('git', ['describe', '--always', '--dirty'], {
    cwd: bench,
    encoding: 'utf8',
  })
  const installed = (/** @type {string} */ name) => {
    const path = `node_modules/${name}/package.json`
    return existsSync(new URL(path, bench)) ? path : `../${path}`
  }
  const at = commit.status === 0 ? ` (${commit.stdout.trim()})` : ''
  return Object.fromEntries([
    ['sluice', version('../packages/sluice/package.json') + at],
    ...packages.map((name) => [name, version(installed(name))]),
  ])
}
