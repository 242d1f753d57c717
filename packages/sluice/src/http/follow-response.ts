import { type NodeRequest, type NodeResponse, whenDone } from './when-done.ts'

/** Following is a request whose response is observed until its end. */
export interface Following {
  readonly method: string
  /** Node's request and response, if known: their events report the end. */
  readonly node?: { readonly incoming: NodeRequest; readonly outgoing: NodeResponse }
  /** Otherwise, a signal that aborts when the client leaves. Some platforms have none. */
  readonly signal: AbortSignal | undefined
  respond(): Promise<Response>
  /**
   * Called when the response has ended. `isWhole` is false if the client left, or the handler or
   * its stream failed, before that. `response` is 499 if there was none yet, and 500 if the handler
   * threw. May be called again; only the first call counts.
   */
  end(response: Response, isWhole: boolean): void
}

/** followResponse returns the response with a body that reports its end. */
export async function followResponse(following: Following): Promise<Response> {
  const { method, node, respond } = following
  const signal = node ? undefined : following.signal
  let response: Response | undefined
  const end = (isWhole: boolean) => {
    signal?.removeEventListener('abort', abort)
    following.end(response ?? dropped(), isWhole)
  }
  const abort = () => end(false)
  if (node) whenDone(node.incoming, node.outgoing, end)
  else if (signal?.aborted) abort()
  else signal?.addEventListener('abort', abort)
  try {
    response = await respond()
    if (node) return response
    // A response to HEAD has no body, even if the handler returns one. For an upgraded connection
    // some
    // platforms expect no response, or one of their own.
    if (method !== 'HEAD' && response instanceof Response && response.body) {
      return new Response(followed(response.body, end), response)
    }
    end(true)
    return response
  } catch (error) {
    response ??= new Response(null, { status: 500 })
    end(false)
    throw error
  }
}

/** dropped returns the response for a client that has left: 499, as in nginx. No client reads it. */
export function dropped(): Response {
  return new Response(null, { status: 499 })
}

function followed(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  end: (isWhole: boolean) => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          end(false)
          return controller.error(error)
        }
        end(true)
        controller.close()
      },
      cancel(reason) {
        end(false)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
