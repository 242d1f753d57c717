// @ts-check
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

/**
 * Typical imports, and their limits in bytes, minified and compressed. ADR 21 says what takes the
 * bytes.
 */
const limits = [
  { name: 'createLimiter, tokenBucket', from: 'index', most: 21_200 },
  { name: 'redisStore', from: 'stores/redis/redis', most: 44_000 },
  { name: 'remoteStore', from: 'stores/remote/remote', most: 34_200 },
]

const root = resolve(import.meta.dirname, '..')

/**
 * sizeOf returns the size of exports of a module, minified and compressed.
 * @param {{ name: string, from: string }} what
 */
async function sizeOf({ name, from }) {
  const entry = '\0entry'
  const result = await build({
    configFile: false,
    logLevel: 'error',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id.endsWith('/bundle-entry') ? entry : undefined),
        load: (id) =>
          id === entry
            ? `export { ${name} } from '${root}/packages/sluice/src/${from}.ts'`
            : undefined,
      },
    ],
    build: {
      write: false,
      target: 'es2023',
      lib: { entry: `${root}/bundle-entry`, formats: ['es'], fileName: 'bundle' },
      rollupOptions: {
        external: [/^node:/],
        treeshake: { moduleSideEffects: false },
        output: { minify: true },
      },
    },
  })
  const { output } = /** @type {any} */ (Array.isArray(result) ? result[0] : result)
  return gzipSync(output[0].code, { level: 9 }).length
}

for (const limit of limits) {
  const bytes = await sizeOf(limit)
  const [is, most] = [bytes, limit.most].map((size) => size.toLocaleString('en'))
  console.log(`${limit.name}: ${is} of ${most} bytes, minified and compressed`)
  if (bytes > limit.most) process.exitCode = 1
}
