import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { readmeBlocks } from './test/readme-blocks.ts'

/** They only compute, so they run beside the units. */
const models = [
  ...['broken-twins', 'conformance', 'console-docs', 'fleet', 'fleet-random', 'fleet-stand-in'],
  'models',
].map((name) => `test/${name}.test.ts`)

/** They exchange the clock of their process. */
const virtualTime = 'packages/server/src/simulate/fleet/*.test.ts'

export default defineConfig({
  ssr: { resolve: { conditions: ['sluice-source', ...defaultServerConditions] } },
  oxc: { decorator: { legacy: true } },
  test: {
    // No test measures time; on a busy machine a million keys take a while.
    testTimeout: 60_000,
    // Vitest would leave one of two cores alone.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['packages/*/{src,dashboard}/**/*.test.ts'],
          exclude: [virtualTime],
          // Files share the modules that their worker has loaded, which takes longer than most tests.
          isolate: false,
        },
      },
      { extends: true, test: { name: 'unit-apart', include: [virtualTime] } },
      { extends: true, test: { name: 'model', include: models } },
      {
        extends: true,
        plugins: [readmeBlocks()],
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          exclude: models,
          fileParallelism: false,
          // Real sockets, processes and clocks: a machine that stands still for a second can fail
          // one of these once. The report tells which were tried again.
          retry: process.env.CI ? 1 : 0,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
