import { defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { readmeBlocks } from './test/readme-blocks.ts'

export default defineConfig({
  ssr: { resolve: { conditions: ['sluice-source', ...defaultServerConditions] } },
  oxc: { decorator: { legacy: true } },
  test: {
    // No test measures time; on a busy machine a million keys take a while.
    testTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['packages/*/{src,dashboard}/**/*.test.ts'] },
      },
      {
        extends: true,
        plugins: [readmeBlocks()],
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
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
