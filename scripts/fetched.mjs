// @ts-check
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const cache = resolve(import.meta.dirname, '..', '.cache')

/**
 * fetched returns the path of a program that npm ships. If it is missing, it is installed first, in
 * its own folder in `.cache`, so that no lockfile changes. Returns undefined if npm cannot.
 * @param {string} name the package
 * @param {string} version
 * @param {string} path of the program in the package
 */
export function fetched(name, version, path) {
  if (!/^\d+(\.\d+)*$/.test(version)) throw new Error(`${name}@${version}: not a version`)
  const folder = join(cache, `${name}s`, version)
  const program = join(folder, 'node_modules', name, path)
  if (existsSync(program)) return program
  console.log(`Installing ${name} ${version} into ${folder}`)
  mkdirSync(folder, { recursive: true })
  const manifest = { private: true, allowScripts: { [name]: true } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  spawnSync('npm', ['install', '--no-package-lock', `${name}@${version}`], {
    cwd: folder,
    stdio: 'inherit',
  })
  return existsSync(program) ? program : undefined
}
