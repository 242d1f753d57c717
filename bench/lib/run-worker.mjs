// @ts-check
import { fork } from 'node:child_process'

const worker = new URL('../worker.mjs', import.meta.url)

/** A process that has not answered after this time is killed. */
const TIMEOUT_MS = 180_000

/**
 * runWorker runs a job in a new process and returns its answer. It never rejects: a process that
 * crashes or hangs gives `{ failed }`, with its last output.
 * @param {import('./jobs.mjs').Job} job
 * @returns {Promise<any>}
 */
export function runWorker(job) {
  return new Promise((done) => {
    const child = fork(worker, [JSON.stringify(job)], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-4_000)
    })
    const timer = setTimeout(() => {
      done({ failed: `no answer within ${TIMEOUT_MS / 1_000} s` })
      child.kill('SIGKILL')
    }, TIMEOUT_MS)
    child.on('message', done)
    child.on('error', (error) => done({ failed: error.message }))
    // Unlike 'exit', it comes after the last message.
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      const why = /^.*\b(?:Error|FATAL)\b.*$/m.exec(said)?.[0].trim() ?? 'it said nothing'
      done({ failed: `the process ended with ${signal ?? code}: ${why}` })
    })
  })
}
