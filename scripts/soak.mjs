// npm run soak: tests that take too long for npm test. --parts selects: `conformance` plays the
// streams and
// the tests of threads with more steps and new seeds until the time is up; `gateway` loads a gateway
// from ever new clients and checks its memory; `simulate` replays a log of 1 GiB.
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { soakGateway } from './soak-gateway.mjs'
import { soakSimulate } from './soak-simulate.mjs'

const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'conformance,gateway,simulate' },
    minutes: { type: 'string', default: '10' },
    steps: { type: 'string', default: '200000' },
    decisions: { type: 'string', default: '1000000' },
    gib: { type: 'string', default: '1' },
    clients: { type: 'string', default: '200000' },
    'most-mb': { type: 'string', default: '250' },
  },
})
const minutes = Number(values.minutes)
const files = ['test/conformance.test.ts', 'test/threads.test.ts', 'packages/sluice/src/stores']
const parts = {
  conformance: () => soakConformance(minutes),
  gateway: () => soakGateway(minutes),
  simulate: () =>
    soakSimulate({
      gib: Number(values.gib),
      clients: Number(values.clients),
      mostMb: Number(values['most-mb']),
    }),
}

for (const name of values.parts.split(',')) {
  if (!(name in parts)) throw new Error(`no part ${name}; there are ${Object.keys(parts)}`)
  await parts[name]()
}

/** @param {number} minutes */
function soakConformance(minutes) {
  const endMs = Date.now() + minutes * 60_000
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
          SLUICE_STALL_MS: '10000',
          SLUICE_TERMINATE_MS: '30000',
          SLUICE_SEED: seed,
        },
      },
    )
    const seconds = Math.round((Date.now() - startedMs) / 1_000)
    const left = Math.max(0, Math.round((endMs - Date.now()) / 60_000))
    console.log(`soak: round ${round}, seed ${seed}: ${seconds} s, about ${left} min left`)
    if (status !== 0) {
      throw new Error(`play it again with SLUICE_SEED=${seed} SLUICE_STEPS=${values.steps}`)
    }
  }
}
