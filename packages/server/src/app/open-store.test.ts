import { expect, it } from 'vitest'
import { openStore } from './open-store.ts'

const settings = {
  ...{ prefix: 'slu', maxKeys: 1, timeoutMs: 50, onFailure: 'local' as const, fleetSize: 1 },
  // A port that no server listens on.
  urls: ['redis://127.0.0.1:1'],
}

it.each([
  ['redis', /ECONNREFUSED 127\.0\.0\.1:1/],
  ['cluster', /slots cache\. Connection is closed/],
] as const)('the trouble with a %s names what its nodes failed by', async (kind, reason) => {
  let store: ReturnType<typeof openStore> | undefined
  await new Promise<void>((resolve) => {
    store = openStore({ ...settings, kind }, () => resolve())
  })
  expect(store?.trouble()).toMatch(reason)
  store?.close()
})
