import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { works } from '../redis/server.ts'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** findBrowser is the path of a Chromium; it is installed first where that can be done unasked. */
export function findBrowser(): string {
  const found = find() ?? (install() ? find() : undefined)
  if (found) return found
  throw new Error(`The tests need one of ${names.join(', ')} on the PATH.`)
}

function find(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)))
  return paths.find((path) => existsSync(path))
}

function install(): boolean {
  const apt = process.getuid?.() === 0 ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  works(...apt, 'update')
  return works(...apt, 'install', '-y', 'chromium')
}
