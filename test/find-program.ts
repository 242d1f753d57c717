import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'

/** Folders of system programs, which are not on every user's PATH. */
const ROOT_FOLDERS = ['/usr/sbin', '/usr/local/sbin']

const found = new Map<string, string>()

/**
 * findProgram returns the path of the first of these programs that exists. Otherwise it installs the
 * Debian package, if that needs no password, or the Homebrew package.
 */
export function findProgram(names: readonly string[], packages: readonly string[]): string {
  const known = found.get(names[0]) ?? look(names) ?? (install(packages) ? look(names) : undefined)
  if (!known) throw new Error(`The tests need ${names.join(' or ')} on the PATH.`)
  found.set(names[0], known)
  return known
}

function look(names: readonly string[]): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...ROOT_FOLDERS]
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return paths.find((path) => existsSync(path))
}

/** Installs packages, and keeps them from starting servers on their default ports. */
function install(packages: readonly string[]): boolean {
  const root = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  const apt = [...root, 'env', 'RUNLEVEL=1', 'DEBIAN_FRONTEND=noninteractive', 'apt-get']
  works(...apt, 'update')
  const name = packages.find((each) => works(...apt, 'install', '-y', each))
  if (name === undefined) return packages.some((each) => works('brew', 'install', each))
  works(...root, 'service', name.replace('-light', ''), 'stop')
  return true
}

function works(...[command, ...args]: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** freePort returns a free port of 127.0.0.1. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
