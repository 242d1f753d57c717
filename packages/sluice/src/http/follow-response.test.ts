import { describe, expect, it, vi } from 'vitest'
import { followResponse } from './follow-response.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Follows what `respond` gives, and what was told of its end: the status, and whether it was whole. */
async function follow(
  respond: () => Promise<Response>,
  { method = 'GET', signal }: { method?: string; signal?: AbortSignal } = {},
) {
  const ends: [number | undefined, boolean][] = []
  const end = (response: Response, isWhole: boolean) => void ends.push([response?.status, isWhole])
  const response = followResponse({ method, signal, respond, end })
  return { response: response.catch((error: Error) => error) as Promise<Response>, ends }
}

const streamed = (source: UnderlyingDefaultSource) =>
  new Response(new ReadableStream(source), { status: 201, headers: { 'x-a': '1' } })

describe('a followed response', () => {
  it('ends when its body has been read', async () => {
    let rest = ['a', 'b']
    const source: UnderlyingDefaultSource = {
      pull(controller) {
        const [next, ...others] = rest
        rest = others
        if (next === undefined) controller.close()
        else controller.enqueue(bytes(next))
      },
    }
    const { response, ends } = await follow(async () => streamed(source))
    const { status, headers, body } = await response
    expect([status, headers.get('x-a'), ends]).toEqual([201, '1', []])
    const reader = body!.getReader()
    await reader.read()
    await reader.read()
    expect(ends).toEqual([])
    expect((await reader.read()).done).toBe(true)
    expect(ends).toEqual([[201, true]])
  })

  it('ends when its body is cancelled, which reaches the handler', async () => {
    const cancel = vi.fn()
    const { response, ends } = await follow(async () => streamed({ cancel }))
    const reader = (await response).body!.getReader()
    const read = reader.read()
    await reader.cancel('enough')
    expect((await read).done).toBe(true)
    expect(cancel).toHaveBeenCalledWith('enough')
    expect(ends[0]).toEqual([201, false])
  })

  it('ends when its body fails', async () => {
    const pull = () => {
      throw new Error('of the body')
    }
    const { response, ends } = await follow(async () => streamed({ pull }))
    await expect((await response).text()).rejects.toThrow('of the body')
    expect(ends).toEqual([[201, false]])
  })

  it('ends at once without a body, for HEAD, and without a response', async () => {
    const none = undefined as never
    for (const [response, method] of [
      [new Response(null, { status: 204 }), 'GET'],
      [new Response('hello'), 'HEAD'],
      [none, 'GET'],
    ] as const) {
      const followed = await follow(async () => response, { method })
      expect(await followed.response).toBe(response)
      expect(followed.ends).toEqual([[response?.status ?? 499, true]])
    }
  })

  it('ends when the handler throws, or has consumed the body', async () => {
    const thrown = await follow(() => Promise.reject(new Error('of the handler')))
    expect(await thrown.response).toMatchObject({ message: 'of the handler' })
    expect(thrown.ends).toEqual([[500, false]])
    const used = new Response('hello')
    const reader = used.body!.getReader()
    const followed = await follow(async () => used)
    expect(await followed.response).toBeInstanceOf(TypeError)
    expect(followed.ends).toEqual([[200, false]])
    reader.releaseLock()
  })

  it('ends when the client leaves, before or after the handler is done', async () => {
    for (const isLate of [false, true]) {
      const gone = new AbortController()
      let reply = (_response: Response) => {}
      const respond = () => new Promise<Response>((resolve) => (reply = resolve))
      const { response, ends } = await follow(respond, gone)
      if (isLate) {
        reply(streamed({}))
        await response
      }
      gone.abort()
      expect(ends).toEqual([[isLate ? 201 : 499, false]])
    }
    const { ends } = await follow(async () => new Response(), { signal: AbortSignal.abort() })
    expect(ends[0]).toEqual([499, false])
  })
})
