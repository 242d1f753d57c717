import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MOST_BYTES } from './read-yaml.ts'

const SETTLE_MS = 100

/**
 * watchConfig calls `onChange` when the content of a file has changed, at most once in 100 ms; call
 * the result to stop. It notices a file that is renamed over, or reached through a symbolic link
 * that moves, as in Kubernetes. A file that is missing for a moment is no change; a file that
 * becomes `unfit` is.
 */
export function watchConfig(file: string, onChange: () => void): () => void {
  const path = resolve(file)
  const watchers = new Map<string, FSWatcher>()
  let content = contentOf(path)
  let timer: NodeJS.Timeout | undefined

  function look(): void {
    timer = undefined
    follow()
    const now = contentOf(path)
    if (now === undefined || now === content) return
    content = now
    onChange()
  }

  function soon(): void {
    clearTimeout(timer)
    timer = setTimeout(look, SETTLE_MS)
  }

  /** Watches the folder of the file, and the folder that its symbolic links lead to. */
  function follow(): void {
    const folders = new Set([dirname(path), realFolder(path)])
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher.close()
      watchers.delete(folder)
    }
    for (const folder of folders) {
      if (watchers.has(folder)) continue
      try {
        const watcher = watch(folder, soon)
        // The folder was removed: `follow` tries again at the next event.
        watcher.on('error', () => {
          watcher.close()
          watchers.delete(folder)
        })
        watchers.set(folder, watcher)
      } catch (error) {
        // The folder of the link is still watched, and reports when the link changes.
        if (folder === dirname(path)) throw error
      }
    }
  }

  follow()
  return () => {
    clearTimeout(timer)
    for (const watcher of watchers.values()) watcher.close()
    watchers.clear()
  }
}

/** unfit returns why a file must not be read, or undefined: reading a pipe would block. */
export function unfit(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isFile()) return 'it is not a regular file. Write one in its place.'
  if (stats && stats.size > MOST_BYTES) return 'it is larger than 1 MB. Make it smaller.'
  return undefined
}

function contentOf(path: string): string | undefined {
  try {
    return unfit(path) ?? readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function realFolder(path: string): string {
  try {
    return dirname(realpathSync(path))
  } catch {
    return dirname(path)
  }
}
