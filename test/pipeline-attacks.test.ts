import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { rawly } from './server/rawly.ts'
import { closeAll, serveUpstream, settingsOf, start } from './server/service.ts'

afterEach(closeAll)

describe('requests pipelined behind a queued hang-up', () => {
  it('are neither parsed nor kept', async () => {
    const held: ServerResponse[] = []
    const upstream = await serveUpstream((_request, response) => void held.push(response))
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    let parsed = 0
    let there: Socket | undefined
    const count = (message: unknown) => {
      parsed += 1
      there ??= (message as { socket: Socket }).socket
    }
    subscribe('http.server.request.start', count)
    const socket = connect(Number(new URL(gatewayUrl).port), '127.0.0.1')
    let said = ''
    socket.on('data', (data) => {
      said += data
    })
    const head = (more: string) => `GET / HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    socket.write(head('X-User: a\r\n'))
    await vi.waitFor(() => expect(held).toHaveLength(1))
    socket.write(`${head('Content-Length: 1\r\n')}x`)
    const many = Buffer.from(head('').repeat(1_000))
    for (let i = 0; i < 30; i += 1) {
      await new Promise((resolve) => socket.write(many, resolve))
    }
    await vi.waitFor(() => expect(there!.bytesRead).toBe(socket.bytesWritten), 20_000)
    // Requests that arrived together with the hang-up have been parsed.
    expect(parsed).toBeLessThan(5_000)
    held[0].end('slow')
    await new Promise((resolve) => socket.once('close', resolve))
    expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
    unsubscribe('http.server.request.start', count)
  })
})

describe('a WebSocket pipelined behind a request that Node answers by itself', () => {
  const head = (more: string) => `GET / HTTP/1.1\r\n${more}\r\n`
  const offer = head('Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n')

  it.each([
    ['without Host', head(''), '400'],
    ['that expects something', head('Host: x\r\nExpect: something\r\n'), '200'],
  ])('waits for its turn: one %s', async (_name, text, status) => {
    const upstream = await serveUpstream()
    const { gatewayUrl } = await start(settingsOf({}, undefined, upstream.url))
    const said = await rawly(gatewayUrl, head('Host: x\r\n') + text + offer, 500)
    // This upstream ignores the upgrade and treats it as an ordinary request.
    expect(said.match(/HTTP\/1\.1 \d+/g)?.map((line) => line.slice(9))).toEqual([
      ...['200', status, '200'],
    ])
  })
})
