import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** rawly sends text and returns the reply. It hangs up after a while if the server does not. */
export async function rawly(url: string, text: string, forMs = 150): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let said = ''
  socket.on('data', (data) => {
    said += data
  })
  socket.on('error', () => {})
  socket.write(text)
  await Promise.race([sleep(forMs), new Promise((resolve) => socket.once('close', resolve))])
  socket.destroy()
  return said
}
