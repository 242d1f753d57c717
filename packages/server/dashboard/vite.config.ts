import { resolve } from 'node:path'
import { defaultClientConditions, defineConfig } from 'vite'

/** Two pages; the API serves them with a policy that forbids inline scripts and other origins. */
export default defineConfig({
  root: import.meta.dirname,
  resolve: { conditions: ['sluice-source', ...defaultClientConditions] },
  build: {
    outDir: '../dist-dashboard',
    emptyOutDir: true,
    target: ['es2023', 'chrome123', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: ['index.html', 'play.html'].map((page) => resolve(import.meta.dirname, page)),
    },
  },
})
