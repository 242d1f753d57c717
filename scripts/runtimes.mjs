// @ts-check
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build, defaultClientConditions, defaultServerConditions } from 'vite'
import { fetched } from './fetched.mjs'

/**
 * A runtime on which the library is tested.
 * @typedef {{
 *   readonly name: string
 *   path(): string | undefined
 *   start(path: string): string[] | Promise<string[]>
 *   readonly isWorker?: boolean
 * }} Runtime
 */

const root = resolve(import.meta.dirname, '..')
const folder = join(root, '.cache', 'runtimes')

/** @type {(version: string) => Runtime} */
const node = (version) => ({
  name: `Node ${version}`,
  path: () =>
    process.versions.node.startsWith(`${version}.`)
      ? process.execPath
      : fetched('node', version, 'bin/node'),
  start: async (path) => [path, await bundled('serve')],
})

/** @type {(name: string, flags: readonly string[]) => Runtime} */
const workerd = (name, flags) => ({
  name,
  path: () => fetched('workerd', '1.20261117.1', 'bin/workerd'),
  start: async (path) => [path, 'serve', await workerConfig(name, flags), '--experimental'],
  isWorker: true,
})

/** @type {readonly Runtime[]} */
export const runtimes = [
  ...['20', '22', '24', '26'].map(node),
  {
    name: 'Bun 1.4',
    path: () => fetched('bun', '1.4.4', 'bin/bun.exe'),
    start: async (path) => [path, 'run', await bundled('serve')],
  },
  {
    name: 'Deno 2.9',
    path: () => fetched('deno', '2.9.6', 'deno'),
    start: async (path) => [path, 'run', '--quiet', '--allow-all', await bundled('serve')],
  },
  workerd('workerd', []),
  workerd('workerd, nodejs_compat', ['nodejs_compat']),
]

/** @type {Map<string, Promise<string>>} */
const bundles = new Map()

/**
 * bundled compiles a program of test/runtimes once, and returns its file: below the root, so that it
 * resolves packages that are not bundled.
 * @param {'serve' | 'worker'} name
 */
function bundled(name) {
  const known = bundles.get(name) ?? bundle(name)
  bundles.set(name, known)
  return known
}

/** @param {string} name */
async function bundle(name) {
  const conditions = name === 'worker' ? defaultClientConditions : defaultServerConditions
  await build({
    configFile: false,
    logLevel: 'error',
    root,
    resolve: { conditions: ['sluice-source', ...conditions] },
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      minify: false,
      lib: { entry: join(root, `test/runtimes/${name}.ts`), formats: ['es'], fileName: name },
      rollupOptions: {
        external: [/^node:/, 'ioredis', 'redis', '@hono/node-server'],
        output: { entryFileNames: `${name}.mjs` },
      },
    },
  })
  return join(folder, `${name}.mjs`)
}

/** @type {(name: string, flags: readonly string[]) => Promise<string>} */
async function workerConfig(name, flags) {
  await bundled('worker')
  const file = join(folder, `${name}.capnp`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    file,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .app),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const app :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-01-01",
  compatibilityFlags = [${flags.map((flag) => `"${flag}"`).join(', ')}],
);
`,
  )
  return file
}

/**
 * startOn starts the program on a runtime, and returns its address and a function to stop it.
 * @param {Runtime} runtime
 */
export async function startOn(runtime) {
  const path = runtime.path()
  if (path === undefined) throw new Error(`npm has no ${runtime.name} for this machine.`)
  const [command, ...args] = await runtime.start(path)
  if (runtime.isWorker) args.push('--control-fd=1')
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const stop = () => child.kill('SIGKILL')
  let said = ''
  for await (const text of child.stdout) {
    said += text
    const port = /(?:listening on |"port":)(\d+)/.exec(said)?.[1]
    if (port) return { url: `http://127.0.0.1:${port}`, stop }
  }
  throw new Error(`${runtime.name} ended: ${said}`)
}
