import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { unfit, watchConfig } from './watch-config.ts'

let folder = ''
let stop = () => {}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-watch-'))
})
afterEach(() => {
  stop()
  rmSync(folder, { recursive: true })
})

function watched(file: string) {
  const onChange = vi.fn()
  stop = watchConfig(file, onChange)
  return {
    onChange,
    changes: (count: number) =>
      vi.waitFor(() => expect(onChange).toHaveBeenCalledTimes(count), 5_000),
  }
}

it('sees a file that is written, once for several writes in a row', async () => {
  const file = join(folder, 'a.yaml')
  writeFileSync(file, '1')
  const { changes } = watched(file)
  for (const text of ['2', '3', '4']) writeFileSync(file, text)
  await changes(1)
  writeFileSync(file, '5')
  await changes(2)
})

it('sees a file that is replaced, also after it was missing for a while', async () => {
  const file = join(folder, 'a.yaml')
  writeFileSync(file, '1')
  const { onChange, changes } = watched(file)
  rmSync(file)
  await sleep(250)
  expect(onChange).not.toHaveBeenCalled()
  writeFileSync(join(folder, 'b.yaml'), '2')
  renameSync(join(folder, 'b.yaml'), file)
  await changes(1)
})

it('sees a symbolic link to a folder move, as in Kubernetes, and later writes', async () => {
  for (const name of ['v1', 'v2']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'a.yaml'), name)
  }
  symlinkSync('v1', join(folder, '..data'))
  symlinkSync(join('..data', 'a.yaml'), join(folder, 'a.yaml'))
  const { changes } = watched(join(folder, 'a.yaml'))
  symlinkSync('v2', join(folder, '..tmp'))
  renameSync(join(folder, '..tmp'), join(folder, '..data'))
  await changes(1)
  writeFileSync(join(folder, 'v2', 'a.yaml'), 'v3')
  await changes(2)
})

it('reports a replacement that must not be read, and does not read it', async () => {
  const file = join(folder, 'a.yaml')
  writeFileSync(file, '1')
  const { changes } = watched(file)
  expect(unfit(file)).toBeUndefined()
  truncateSync(file, 3_000_000_000)
  await changes(1)
  expect(unfit(file)).toContain('larger than 1 MB')
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'pipe')])
  renameSync(join(folder, 'pipe'), file)
  await changes(2)
  expect(unfit(file)).toContain('not a regular file')
  rmSync(file)
  writeFileSync(file, '2')
  await changes(3)
})

it('reports nothing when the content stays the same, when another file changes, and once stopped', async () => {
  const file = join(folder, 'a.yaml')
  writeFileSync(file, '1')
  const { onChange } = watched(file)
  writeFileSync(file, '1')
  writeFileSync(join(folder, 'other.yaml'), '2')
  await sleep(250)
  stop()
  writeFileSync(file, '2')
  await sleep(250)
  expect(onChange).not.toHaveBeenCalled()
})
