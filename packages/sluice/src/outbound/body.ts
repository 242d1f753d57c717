/**
 * releasedByBody calls `release` when the body of a response has been read to its end, has failed or
 * was cancelled, or when the signal of the request aborts; at once if there is no body to read. The
 * response that it returns replaces the given one.
 */
export function releasedByBody(
  response: Response,
  request: Request,
  release: () => void,
): Response {
  const { body, url, redirected, type } = response
  if (body === null || body.locked || request.signal.aborted) {
    release()
    return response
  }
  const end = () => {
    request.signal.removeEventListener('abort', end)
    release()
  }
  request.signal.addEventListener('abort', end)
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  /**
   * Called at the first read, since the runtime closes abandoned bodies only if they have no
   * reader.
   */
  function begin(from: ReadableStream<Uint8Array>): ReadableStreamDefaultReader<Uint8Array> {
    reader = from.getReader()
    reader.closed.then(end, end)
    return reader
  }

  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await (reader ?? begin(body)).read()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel(reason) {
        end()
        await (reader ?? body).cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return Object.defineProperties(new Response(stream, response), {
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
  })
}
