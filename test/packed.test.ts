import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { buildLibrary } from './threads/crew.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '..')
/** A project with the packed library installed. It resolves other packages from parent folders. */
const project = join(root, 'test/jest/.packed')

beforeAll(async () => {
  buildLibrary()
  const installed = join(project, 'node_modules/sluice')
  rmSync(project, { recursive: true, force: true })
  mkdirSync(installed, { recursive: true })
  const packing = ['pack', '--silent', '--pack-destination', project]
  const { stdout } = await run('npm', [...packing, join(root, 'packages/sluice')])
  const packed = join(project, stdout.trim())
  await run('tar', ['xzf', packed, '--strip-components', '1', '-C', installed])
  writeFileSync(join(project, 'package.json'), '{ "private": true }')
  for (const spec of ['requires.spec.js', 'imports.spec.ts']) {
    cpSync(join(root, 'test/jest', spec), join(project, spec))
  }
  cpSync(join(project, 'imports.spec.ts'), join(project, 'imports.mts'))
}, 60_000)

describe('the packed library', () => {
  it('has the same exports for import and require, and runs for both', async () => {
    const script = `
      const { exports } = require('sluice/package.json')
      const different = []
      const go = async () => {
        for (const entry of Object.keys(exports)) {
          const name = entry.replace('.', 'sluice')
          if (name.endsWith('.json')) continue
          const [a, b] = [require(name), await import(name)].map((all) => Object.keys(all).sort().join())
          if (a !== b || a === '') different.push([name, a, b])
        }
        const { createLimiter, tokenBucket } = require('sluice')
        const allowed = createLimiter(tokenBucket({ limit: 1, per: '1h' })).allow('alice')
        console.log(JSON.stringify({ different, allowed }))
      }
      go()`
    const { stdout } = await run(process.execPath, ['--eval', script], { cwd: project })
    expect(JSON.parse(stdout)).toEqual({ different: [], allowed: true })
  })

  it('runs in Jest', async () => {
    expect(await jest('requires.spec.js', {})).toMatch(/^Tests: +\d+ passed, \d+ total$/m)
  }, 120_000)

  it.each([
    ['as TypeScript does by default', { module: 'commonjs' }],
    ['with module: node16', { module: 'node16' }],
  ])(
    'runs in ts-jest %s',
    async (_how, module) => {
      const tsconfig = { ...module, target: 'es2022', strict: true, isolatedModules: false }
      const transform = { '\\.ts$': ['ts-jest', { tsconfig }] }
      const output = await jest('imports.spec.ts', { transform })
      expect(output).toMatch(/^Tests: +3 passed, 3 total$/m)
    },
    120_000,
  )

  // ts-jest has checked the types with TypeScript 5.
  it.each([
    ['node16', 'node16', 'imports.spec.ts'],
    ['nodenext', 'nodenext', 'imports.mts'],
    ['preserve', 'bundler', 'imports.mts'],
  ])(
    'has types with module %s and moduleResolution %s, in %s',
    async (module, how, file) => {
      const options = { module, moduleResolution: how, target: 'es2022', strict: true }
      const compilerOptions = { ...options, types: ['node'], skipLibCheck: true, noEmit: true }
      const tsconfig = join(project, 'tsconfig.json')
      writeFileSync(tsconfig, JSON.stringify({ compilerOptions, files: [file] }))
      const tsc = join(root, 'node_modules/typescript/bin/tsc')
      const check = run(process.execPath, [tsc, '-p', tsconfig], { cwd: project })
      const { stdout } = await check.catch((error: { stdout: string }) => error)
      expect(stdout).toBe('')
    },
    120_000,
  )
})

/** Runs one file of the project in Jest, and returns its output. */
async function jest(file: string, config: object): Promise<string> {
  const options = { rootDir: project, testEnvironment: 'node', ...config }
  writeFileSync(join(project, 'jest.config.json'), JSON.stringify(options))
  const words = [
    join(root, 'node_modules/jest/bin/jest.js'),
    '--ci',
    '--no-cache',
    '--runInBand',
    file,
  ]
  const { NODE_OPTIONS: _, ...env } = process.env
  const { stdout, stderr } = await run(process.execPath, words, { cwd: project, env }).catch(
    (error: { stdout: string; stderr: string }) => error,
  )
  return stdout + stderr
}
