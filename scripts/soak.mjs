// npm run soak: the conformance streams and the tests of threads, much longer, under other seeds
// until time is up.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    steps: { type: 'string', default: '200000' },
    decisions: { type: 'string', default: '1000000' },
  },
})
const endMs = Date.now() + Number(values.minutes) * 60_000
const files = ['test/conformance.test.ts', 'test/threads.test.ts', 'packages/sluice/src/stores']

for (let round = 1; Date.now() < endMs; round += 1) {
  const startedMs = Date.now()
  const seed = String(startedMs % 2 ** 31)
  const { status } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--reporter=dot', ...files],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        SLUICE_STEPS: values.steps,
        SLUICE_DECISIONS: values.decisions,
        SLUICE_SEED: seed,
      },
    },
  )
  const seconds = Math.round((Date.now() - startedMs) / 1_000)
  const left = Math.max(0, Math.round((endMs - Date.now()) / 60_000))
  console.log(`soak: round ${round}, seed ${seed}: ${seconds} s, about ${left} min left`)
  if (status !== 0) {
    console.error(
      `soak: failed. Play it again with SLUICE_SEED=${seed} SLUICE_STEPS=${values.steps}.`,
    )
    process.exit(1)
  }
}
