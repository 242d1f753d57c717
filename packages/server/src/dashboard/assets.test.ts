import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fastify from 'fastify'
import { afterAll, describe, expect, it } from 'vitest'
import { addAssets } from './assets.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-assets-'))
mkdirSync(join(folder, 'assets'))
writeFileSync(join(folder, 'index.html'), '<title>dashboard</title>')
writeFileSync(join(folder, 'play.html'), '<title>playground</title>')
writeFileSync(join(folder, 'assets/main-abc123.js'), 'run()')
writeFileSync(join(folder, 'secret.txt'), 'not for anybody')
afterAll(() => rmSync(folder, { recursive: true }))

function serve(path: string) {
  const app = fastify()
  addAssets(app, pathToFileURL(`${path}/`))
  return app
}

describe('the assets', () => {
  it('are pages that are revalidated, and files that browsers cache', async () => {
    const app = serve(folder)
    const page = await app.inject('/')
    expect(page.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    expect(page.body).toContain('dashboard')
    expect((await app.inject('/play?limit=3')).body).toContain('playground')
    const script = await app.inject('/assets/main-abc123.js')
    expect([script.body, script.headers['cache-control'], script.headers['content-type']]).toEqual([
      'run()',
      'public, max-age=31536000, immutable',
      'text/javascript; charset=utf-8',
    ])
  })

  it('are these files and no others', async () => {
    const app = serve(folder)
    const paths = ['/secret.txt', '/assets/', '/assets/../secret.txt', '/assets/%2e%2e/secret.txt']
    for (const path of [...paths, '/assets/main-abc123.js/', '/assets', '//etc/passwd']) {
      expect([path, (await app.inject(path)).statusCode]).toEqual([path, 404])
    }
  })

  it('are replaced by a hint to build them where they are missing', async () => {
    const answer = await serve(join(folder, 'nowhere')).inject('/')
    expect([answer.statusCode, answer.body]).toEqual([
      503,
      expect.stringContaining('npm run build'),
    ])
  })
})
